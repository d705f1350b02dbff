//! The log: what happens inside, as JSON lines on stderr, where somebody asked for it.

use std::io::{self, Write};

use opentelemetry::trace::TracerProvider;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::render::without_acting;
use crate::traces::Traces;

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing.
    #[default]
    Off,
    /// What failed.
    Error,
    /// What was refused or left out, too.
    Warn,
    /// Every step, with its time, too.
    Info,
    /// Everything.
    Debug,
}

/// Starts the log of this process, and hands its spans to a collector too where there is one.
pub fn start(level: LogLevel, traces: Option<&Traces>) {
    let most = match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    if most == LevelFilter::OFF && traces.is_none() {
        return;
    }
    let lines = tracing_subscriber::fmt::layer().json().flatten_event(true);
    // A span is told when it ends, with the time it took.
    let lines = lines
        .with_span_events(FmtSpan::CLOSE)
        .with_writer(|| Harmless(io::stderr()))
        .with_filter(most);
    let spans = traces.map(|traces| {
        let tracer = traces.provider().tracer("skillbox");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_filter(LevelFilter::INFO)
    });
    let log = tracing_subscriber::registry().with(lines).with(spans);
    // Only a second start could fail, and there is none.
    let _already = log.try_init();
}

/// Writes lines without anything that a terminal would obey; names and paths in them are a stranger's.
struct Harmless<W>(W);

impl<W: Write> Write for Harmless<W> {
    /// Each line comes whole.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0
            .write_all(without_acting(&String::from_utf8_lossy(line)).as_bytes())?;
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
    fn lines_carry_nothing_that_acts() {
        let mut out = Vec::new();
        let line = serde_json::json!({"path": "a\u{9b}2J\u{202e}b"}).to_string() + "\n";
        Harmless(&mut out).write_all(line.as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "{\"path\":\"a\\u009b2J\\u202eb\"}\n");
    }
}
