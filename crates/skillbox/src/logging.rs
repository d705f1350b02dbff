//! Logging: events and spans as JSON lines on stderr, and spans to a trace collector.

use std::io::{self, Write};

use opentelemetry::trace::TracerProvider;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::render::escape_json;
use crate::settings::LogLevel;
use crate::trace_export::TraceExport;

/// Starts logging in this process, and exports spans if a collector is configured.
pub fn start(level: LogLevel, export: Option<&TraceExport>) {
    let max_level = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    if max_level == LevelFilter::OFF && export.is_none() {
        return;
    }
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true);
    // A span is logged when it closes, with its duration.
    let lines = lines
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(|| EscapingWriter(io::stderr()))
        .with_filter(max_level);
    let spans = export.map(|export| {
        let tracer = export.provider().tracer("skillbox");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_filter(LevelFilter::INFO)
    });
    let log = tracing_subscriber::registry().with(lines).with(spans);
    // This fails only if logging was started before, which never happens.
    let _already_started = log.try_init();
}

/// Logs panics as events instead of text.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let message = panic.payload_as_str().unwrap_or("panic");
        tracing::error!(place, "internal error: {message}");
    }));
}

/// Escapes control characters: names and paths in log lines are untrusted.
struct EscapingWriter<W>(W);

impl<W: Write> Write for EscapingWriter<W> {
    /// The formatter writes each line with one call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0
            .write_all(escape_json(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_in_lines_are_escaped() {
        let mut out = Vec::new();
        let line = serde_json::json!({"path": "a\u{9b}2J\u{202e}b"}).to_string() + "\n";
        EscapingWriter(&mut out).write_all(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "{\"path\":\"a\\u009b2J\\u202eb\"}\n");
    }
}
