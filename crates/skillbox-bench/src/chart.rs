//! A bar chart as SVG: one bar for each way of a table, as long as its median.

use std::fmt::Write as _;
use std::time::Duration;

use crate::contest::Times;

const WIDTH: f64 = 760.0;
const LABEL: f64 = 270.0;
const VALUE: f64 = 90.0;
const BAR: f64 = 18.0;
const ROW: f64 = 26.0;
const TITLE: f64 = 34.0;

/// The chart of some tables, one below the other; each has its own scale.
pub(crate) fn draw(tables: &[Times]) -> String {
    let parts: Vec<_> = tables.iter().map(Times::medians).collect();
    let rows: usize = parts.iter().map(|(_, ways)| ways.len()).sum();
    let height = parts.len() as f64 * (TITLE + 10.0) + rows as f64 * ROW;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut y = 0.0;
    for (title, ways) in &parts {
        part(&mut svg, title, ways, &mut y);
    }
    svg.push_str("</svg>\n");
    svg
}

fn part(svg: &mut String, title: &str, ways: &[(&str, Duration)], y: &mut f64) {
    let longest = ways.iter().map(|(_, time)| time.as_secs_f64()).fold(0.0, f64::max);
    let mut put = |text: String| svg.push_str(&text);
    put(format!(
        "<text x=\"8\" y=\"{:.0}\" font-weight=\"600\" fill=\"#1f2328\">{}</text>\n",
        *y + 22.0,
        escaped(title)
    ));
    *y += TITLE;
    for (name, time) in ways {
        let share = time.as_secs_f64() / longest.max(f64::MIN_POSITIVE);
        let length = (share * (WIDTH - LABEL - VALUE)).max(1.0);
        // Ours stand out from what they are measured against.
        let is_ours = ["skill", "n-th", "python, parked"]
            .iter()
            .any(|start| name.starts_with(start));
        let colour = if is_ours { "#1a7f5a" } else { "#9aa4af" };
        let middle = *y + BAR - 4.0;
        let mut row = String::new();
        let _ = writeln!(
            row,
            "<text x=\"{:.0}\" y=\"{middle:.0}\" text-anchor=\"end\" fill=\"#1f2328\">{}</text>\
             <rect x=\"{LABEL:.0}\" y=\"{:.0}\" width=\"{length:.1}\" height=\"{BAR:.0}\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{middle:.0}\" fill=\"#1f2328\">{}</text>",
            LABEL - 8.0,
            escaped(name),
            *y,
            LABEL + length + 6.0,
            shown(*time)
        );
        put(row);
        *y += ROW;
    }
    *y += 10.0;
}

fn shown(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1e3;
    if millis < 10.0 {
        format!("{millis:.2} ms")
    } else {
        format!("{millis:.0} ms")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Contest;

    #[test]
    fn every_way_has_a_bar_and_markup_is_text() {
        let mut contest = Contest::new("a < b & c");
        contest.way("bare", || Ok(()));
        contest.way("skill_run", || {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        });
        let svg = draw(&[contest.hold(3).unwrap()]);
        assert_eq!(svg.matches("rx=").count(), 2);
        assert!(svg.contains("a &lt; b &amp; c"));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
