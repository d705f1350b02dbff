//! Draws a bar chart as SVG: one bar for each candidate of a table, whose length is the median.

use std::fmt::Write as _;
use std::time::Duration;

use crate::comparison::Timings;

const WIDTH: f64 = 760.0;
const LABEL_WIDTH: f64 = 270.0;
const VALUE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 18.0;
const ROW_HEIGHT: f64 = 26.0;
const TITLE_HEIGHT: f64 = 34.0;

/// Draws a chart of several tables, one below the other, each with its own scale.
pub(crate) fn draw(tables: &[Timings]) -> String {
    let tables_with_medians: Vec<_> = tables.iter().map(Timings::medians).collect();
    let rows: usize = tables_with_medians.iter().map(|(_, candidates)| candidates.len()).sum();
    let height = tables_with_medians.len() as f64 * (TITLE_HEIGHT + 10.0) + rows as f64 * ROW_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut y = 0.0;
    for (title, candidates) in &tables_with_medians {
        draw_table(&mut svg, title, candidates, &mut y);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_table(svg: &mut String, title: &str, candidates: &[(&str, Duration)], y: &mut f64) {
    let longest = candidates
        .iter()
        .map(|(_, time)| time.as_secs_f64())
        .fold(0.0, f64::max);
    let mut push = |text: String| svg.push_str(&text);
    push(format!(
        "<text x=\"8\" y=\"{:.0}\" font-weight=\"600\" fill=\"#1f2328\">{}</text>\n",
        *y + 22.0,
        escape_markup(title)
    ));
    *y += TITLE_HEIGHT;
    for (name, time) in candidates {
        let fraction = time.as_secs_f64() / longest.max(f64::MIN_POSITIVE);
        let length = (fraction * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)).max(1.0);
        // The bars of skillbox are green, the others grey.
        let is_skillbox = ["skill", "n-th", "python, parked"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        let colour = if is_skillbox { "#1a7f5a" } else { "#9aa4af" };
        let baseline = *y + BAR_HEIGHT - 4.0;
        let mut row = String::new();
        let _ = writeln!(
            row,
            "<text x=\"{:.0}\" y=\"{baseline:.0}\" text-anchor=\"end\" fill=\"#1f2328\">{}</text>\
             <rect x=\"{LABEL_WIDTH:.0}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT:.0}\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{baseline:.0}\" fill=\"#1f2328\">{}</text>",
            LABEL_WIDTH - 8.0,
            escape_markup(name),
            *y,
            LABEL_WIDTH + length + 6.0,
            format_time(*time)
        );
        push(row);
        *y += ROW_HEIGHT;
    }
    *y += 10.0;
}

fn format_time(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 10.0 {
        format!("{millis:.2} ms")
    } else {
        format!("{millis:.0} ms")
    }
}

fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Comparison;

    #[test]
    fn every_candidate_has_a_bar_and_markup_is_escaped() {
        let mut comparison = Comparison::new("a < b & c");
        comparison.add("bare", || Ok(()));
        comparison.add("skill_run", || {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        });
        let svg = draw(&[comparison.measure(3).unwrap()]);
        assert_eq!(svg.matches("rx=").count(), 2);
        assert!(svg.contains("a &lt; b &amp; c"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
