"""Points → a finished SVG chart."""

from __future__ import annotations

from dataclasses import replace

from .aggregate import Series, bars, bins, dots, line_series
from .columns import Column
from .plan import ChartPlan, distinct
from .scale import Axis, compact, date_axis, number_axis, year_axis
from .summary import correlation, quantile
from .svg import Drawing, Palette, shorten, text_width

WIDTH = 960.0
HEIGHT = 540.0
EDGE = 40.0
PLOT_TOP = 104.0
FOOT = 64.0
LABEL = 12.0
HEADROOM = 0.08
MOST_MARKERS = 40
BAR_PITCH = 32.0


class EmptyChartError(Exception):
    """The plan has no points to draw."""


def draw(plan: ChartPlan, palette: Palette, source: str, title: str | None) -> str:
    """Draw the planned chart."""
    painter = {"line": draw_line, "bar": draw_bars, "histogram": draw_histogram, "scatter": draw_scatter}[plan.kind]
    return painter(plan, palette, source, title)


def named(column: Column) -> str:
    """The name of a column with its unit."""
    unit = column.detail.get("unit")
    return f"{column.name} ({unit})" if unit and str(unit) not in column.name else column.name


def amount_title(plan: ChartPlan) -> str:
    """Say what is measured, such as `sum of sales`."""
    if plan.y is None or plan.aggregate == "count":
        return "number of rows"
    return f"{plan.aggregate} of {named(plan.y)}" if plan.aggregate else named(plan.y)


def sheet(height: float, palette: Palette, title: str, subtitle: str, source: str) -> Drawing:
    """Start a drawing with its heading and its foot."""
    drawing = Drawing(WIDTH, height, title, f"{subtitle}. {source}", palette)
    room = WIDTH - 2 * EDGE
    drawing.text(EDGE, 46, shorten(title, 21, room), 21, font_weight="600", fill=palette.ink)
    drawing.text(EDGE, 70, shorten(subtitle, 13, room), 13, fill=palette.muted)
    drawing.text(EDGE, height - 18, shorten(source, 11, room), 11, fill=palette.muted)
    return drawing


def sentence(text: str) -> str:
    """Capitalise the first letter only."""
    return text[:1].upper() + text[1:]


def value_axis(low: float, high: float, bottom: float, *, zero: bool, whole: bool = False) -> Axis:
    """The vertical axis; it includes zero when that does not flatten the data."""
    if zero or (low > 0 and low < 0.6 * high):
        low = min(0.0, low)
    if zero or (high < 0 and high > 0.6 * low):
        high = max(0.0, high)
    axis = number_axis(low, high, bottom, PLOT_TOP, whole=whole)
    # A last tick far above the data would waste the plot, so the axis may end between two ticks.
    top = min(axis.high, max(high + HEADROOM * (high - axis.low), axis.ticks[1][0]))
    return replace(axis, high=top, ticks=[tick for tick in axis.ticks if tick[0] <= top])


def left_margin(axis: Axis) -> float:
    """Room for the labels of the vertical axis."""
    return EDGE + max(text_width(text, LABEL) for _, text in axis.ticks) + 10


def draw_rows(drawing: Drawing, axis: Axis, left: float, right: float) -> None:
    """Horizontal grid lines with their labels."""
    palette = drawing.palette
    for mark, text in axis.ticks:
        y = axis.place(mark)
        strong = mark in (0, axis.low)
        drawing.line(left, y, right, y, palette.muted if strong else palette.grid, stroke_width="1")
        drawing.text(left - 10, y + 4, text, LABEL, text_anchor="end", fill=palette.muted)


def draw_marks(drawing: Drawing, axis: Axis, bottom: float, *, grid: bool) -> None:
    """Labels of the horizontal axis; one that would touch its neighbour is left out."""
    palette = drawing.palette
    free = float("-inf")
    for mark, text in axis.ticks:
        x, half = axis.place(mark), text_width(text, LABEL) / 2
        if grid:
            drawing.line(x, PLOT_TOP, x, bottom, palette.grid, stroke_width="1")
        if x - half >= free and x + half <= WIDTH - 4:
            drawing.line(x, bottom, x, bottom + 5, palette.muted, stroke_width="1")
            drawing.text(x, bottom + 20, text, LABEL, text_anchor="middle", fill=palette.muted)
            free = x + half + 8


def horizontal_axis(column: Column, series: list[Series], left: float, right: float) -> Axis:
    """The axis that fits the column's kind."""
    places = [x for one in series for x, _ in one.points]
    low, high = min(places), max(places)
    if column.kind == "date":
        return date_axis(low, high, left, right)
    if column.is_year:
        return year_axis(low, high, left, right)
    return number_axis(low, high, left, right, wanted=8)


def draw_line(plan: ChartPlan, palette: Palette, source: str, title: str | None) -> str:
    """A value over time."""
    series = line_series(plan)
    values = [y for one in series for _, y in one.points]
    if not values:
        raise EmptyChartError("no row has both an x and a y value")
    subtitle = f"by {plan.x.name}" + (f", one line for each {plan.group.name}" if plan.group else "")
    drawing = sheet(HEIGHT, palette, title or sentence(amount_title(plan)), sentence(subtitle), source)
    bottom = HEIGHT - FOOT
    vertical = value_axis(min(values), max(values), bottom, zero=False)
    names = [shorten(one.name, 13, 150) for one in series]
    right = WIDTH - EDGE - (max(text_width(name, 13) for name in names) + 14 if plan.group else 8)
    left = left_margin(vertical)
    draw_rows(drawing, vertical, left, right)
    horizontal = horizontal_axis(plan.x, series, left + 6, right - 6)
    draw_marks(drawing, horizontal, bottom, grid=False)
    for index, one in enumerate(series):
        colour = palette.series[index % len(palette.series)]
        pixels = [(horizontal.place(x), vertical.place(y)) for x, y in one.points]
        draw_curve(drawing, pixels, colour, vertical.place(max(0.0, vertical.low)), shaded=len(series) == 1)
    if plan.group:
        draw_end_labels(drawing, series, names, vertical, right)
    return drawing.render()


def draw_curve(drawing: Drawing, pixels: list[tuple[float, float]], colour: str, base: float, *, shaded: bool) -> None:
    """One line, shaded down to its base, with a dot on each point when they are few."""
    path = "M" + " L".join(f"{x:.1f},{y:.1f}" for x, y in pixels)
    if shaded and len(pixels) > 1:
        area = f"{path} L{pixels[-1][0]:.1f},{base:.1f} L{pixels[0][0]:.1f},{base:.1f} Z"
        drawing.add("path", d=area, fill=colour, fill_opacity="0.10")
    drawing.add(
        "path", d=path, fill="none", stroke=colour, stroke_width="2.5", stroke_linejoin="round", stroke_linecap="round"
    )
    if len(pixels) <= MOST_MARKERS:
        for x, y in pixels:
            drawing.add("circle", cx=x, cy=y, r=3.5, fill=colour, stroke=drawing.palette.background, stroke_width="1.5")


def draw_end_labels(drawing: Drawing, series: list[Series], names: list[str], axis: Axis, right: float) -> None:
    """Name each line at its end, pushed apart where they would overlap."""
    wanted = sorted((axis.place(one.points[-1][1]), index) for index, one in enumerate(series))
    places: list[float] = []
    for y, _ in wanted:
        places.append(max(y, places[-1] + 18) if places else y)
    overflow = max(0.0, places[-1] - axis.start)
    for place, (_, index) in zip(places, wanted):
        colour = drawing.palette.series[index % len(drawing.palette.series)]
        drawing.text(right + 8, place - overflow + 4.5, names[index], 13, font_weight="600", fill=colour)


def draw_bars(plan: ChartPlan, palette: Palette, source: str, title: str | None) -> str:
    """Horizontal bars, the largest first."""
    found = bars(plan)
    if not found:
        raise EmptyChartError("no row has both a category and a value")
    height = PLOT_TOP + BAR_PITCH * len(found) + FOOT - 16
    heading = title or sentence(f"{amount_title(plan)} by {plan.x.name}")
    drawing = sheet(height, palette, heading, f"The largest of {distinct(plan.x)} categories first", source)
    names = [shorten(name, 13, 240) for name, _ in found]
    left = EDGE + max(text_width(name, 13) for name in names) + 12
    labels = [compact(value) for _, value in found]
    widest = max(text_width(text, 13) for text in labels) + 12
    low, high = min(0.0, *(value for _, value in found)), max(0.0, *(value for _, value in found))
    start = left + (widest if low < 0 else 0)
    axis = Axis(low, high if high > low else low + 1, start, WIDTH - EDGE - widest, [])
    zero = axis.place(0)
    for index, ((_, value), name, text) in enumerate(zip(found, names, labels)):
        y = PLOT_TOP - 8 + BAR_PITCH * index
        end = axis.place(value)
        rest = index == len(found) - 1 and name.startswith("all others (")
        colour = palette.muted if rest else palette.series[0 if value >= 0 else 1 % len(palette.series)]
        drawing.add(
            "rect", x=min(zero, end), y=y, width=max(abs(end - zero), 1.0), height=BAR_PITCH - 9, rx="3", fill=colour
        )
        anchor, gap = ("start", 8) if value >= 0 else ("end", -8)
        drawing.text(left - 12, y + 16, name, 13, text_anchor="end", fill=palette.ink)
        drawing.text(end + gap, y + 16, text, 13, text_anchor=anchor, fill=palette.muted)
    bottom = PLOT_TOP - 8 + BAR_PITCH * len(found) - 3
    drawing.line(zero, PLOT_TOP - 14, zero, bottom, palette.muted, stroke_width="1")
    return drawing.render()


def draw_histogram(plan: ChartPlan, palette: Palette, source: str, title: str | None) -> str:
    """Counts of values in equal bins, with the median marked."""
    if not plan.x.numbers:
        raise EmptyChartError("the column has no numbers")
    found = bins(plan.x)
    median = quantile(sorted(plan.x.numbers), 0.5)
    heading = title or f"Distribution of {named(plan.x)}"
    subtitle = f"Number of rows in {len(found)} bins of {compact(found[0].high - found[0].low)}"
    drawing = sheet(HEIGHT, palette, heading, subtitle, source)
    bottom = HEIGHT - FOOT
    vertical = value_axis(0, max(one.count for one in found), bottom, zero=True, whole=True)
    left, right = left_margin(vertical), WIDTH - EDGE
    draw_rows(drawing, vertical, left, right)
    low, high = found[0].low, found[-1].high
    ticks = [tick for tick in number_axis(low, high, 0, 1, wanted=8).ticks if low <= tick[0] <= high]
    horizontal = Axis(low, high, left + 8, right - 8, ticks)
    for one in found:
        x, end, y = horizontal.place(one.low), horizontal.place(one.high), vertical.place(one.count)
        drawing.add("rect", x=x + 0.75, y=y, width=max(end - x - 1.5, 0.5), height=bottom - y, fill=palette.series[0])
    draw_marks(drawing, horizontal, bottom, grid=False)
    draw_median(drawing, horizontal.place(median), median, bottom)
    return drawing.render()


def draw_median(drawing: Drawing, x: float, median: float, bottom: float) -> None:
    """A dashed line with its value on the roomier side."""
    colour = drawing.palette.series[1 % len(drawing.palette.series)]
    drawing.line(x, PLOT_TOP - 22, x, bottom, colour, stroke_width="2", stroke_dasharray="5 4")
    anchor, gap = ("start", 7) if x < WIDTH - 160 else ("end", -7)
    text = f"median {compact(median)}"
    drawing.text(x + gap, PLOT_TOP - 11, text, 13, text_anchor=anchor, font_weight="600", fill=colour)


def draw_scatter(plan: ChartPlan, palette: Palette, source: str, title: str | None) -> str:
    """One dot for each row."""
    series, total = dots(plan)
    points = [point for one in series for point in one.points]
    if not points or plan.y is None:
        raise EmptyChartError("no row has two numbers")
    related = correlation(plan.x, plan.y)
    subtitle = f"{total:,} rows" if len(points) == total else f"{len(points):,} of {total:,} rows"
    subtitle += f", correlation r = {related['r']}" if related else ""
    drawing = sheet(HEIGHT, palette, title or sentence(f"{named(plan.y)} against {named(plan.x)}"), subtitle, source)
    bottom = HEIGHT - FOOT - 16
    vertical = value_axis(min(y for _, y in points), max(y for _, y in points), bottom, zero=False)
    left, right = left_margin(vertical), WIDTH - EDGE
    draw_rows(drawing, vertical, left, right)
    horizontal = horizontal_axis(plan.x, series, left + 8, right - 8)
    draw_marks(drawing, horizontal, bottom, grid=True)
    radius = 4.5 if len(points) <= 300 else 2.5
    for index, one in enumerate(series):
        colour = palette.series[index % len(palette.series)]
        for x, y in one.points:
            drawing.add(
                "circle", cx=horizontal.place(x), cy=vertical.place(y), r=radius, fill=colour, fill_opacity="0.65"
            )
    drawing.text((left + right) / 2, bottom + 40, named(plan.x), 13, text_anchor="middle", fill=palette.ink)
    if plan.group:
        draw_legend(drawing, [one.name for one in series], right)
    return drawing.render()


def draw_legend(drawing: Drawing, names: list[str], right: float) -> None:
    """Coloured names in one row above the plot, right-aligned."""
    x = right
    for index in reversed(range(len(names))):
        name = shorten(names[index], 13, 110)
        x -= text_width(name, 13)
        colour = drawing.palette.series[index % len(drawing.palette.series)]
        drawing.text(x, PLOT_TOP - 14, name, 13, font_weight="600", fill=colour)
        drawing.add("circle", cx=x - 9, cy=PLOT_TOP - 18.5, r=4.5, fill=colour)
        x -= 32
