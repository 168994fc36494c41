"""Charts for a terminal: bars, a curve of blocks, and a line of shares.

All are rich texts, so colour follows the terminal and `plain` is what a file would get.
"""

from collections.abc import Mapping, Sequence
from math import isfinite, log

from rich.text import Text

from tenfold.decide.layout.scaling import ScalingCurve
from tenfold.report.charts.axes import Label, plain, si, thousands
from tenfold.report.figures import share

BLOCKS = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
LENGTHS = ("", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589", "\u2588")
FULL = "\u2588"
BAR_MIN, LABEL_MAX = 8, 28
LEFT, FOOT = 10, 0.35


def shares_line(shares: Sequence[float], cells: int) -> str:
    """Return shares of a whole over time as a line of blocks, each the mean of its stretch."""
    width = max(1, -(-len(shares) // cells))
    parts = [shares[start : start + width] for start in range(0, len(shares), width)]
    means = (sum(part) / len(part) for part in parts)
    return "".join(BLOCKS[round(8 * max(0.0, min(1.0, mean)))] for mean in means)


def levels(shares: Mapping[str, float], width: int = 60) -> Text:
    """Return a bar for each share of one whole."""
    names = max((len(name) for name in shares), default=0)
    room = max(BAR_MIN, width - names - 7)
    made = Text(no_wrap=True)
    for place, (name, part) in enumerate(shares.items()):
        made.append("\n" if place else "")
        made.append(f"{name:<{names}} ")
        made.append(f"{_bar(room * part):<{room}}", style="blue")
        made.append(f" {share(part):>5}")
    return made


def _share(value: float, low: float, high: float) -> float:
    # Halves, since the span of two large floats can be more than a float holds.
    span = high / 2 - low / 2
    return (value / 2 - low / 2) / span if span > 0 else 0.5


def bars(values: Mapping[str, float], label: Label = plain, width: int = 80) -> Text:
    """Return a bar for each name that has something, with its value and share of the whole."""
    good = {name: value for name, value in values.items() if isfinite(value) and value > 0}
    largest = max(good.values(), default=0.0)
    whole = sum(good.values())
    names = min(LABEL_MAX, max((len(name) for name in good), default=0))
    words = {name: label(value) for name, value in good.items()}
    numbers = max((len(word) for word in words.values()), default=0)
    room = max(BAR_MIN, width - names - numbers - 9)
    made = Text(no_wrap=True)
    for place, (name, value) in enumerate(good.items()):
        length = room * (value / largest)
        made.append("\n" if place else "")
        made.append(f"{_cut(name, names):<{names}} ")
        made.append(f"{_bar(length):<{room}}", style="blue")
        made.append(f" {words[name]:>{numbers}}")
        made.append(f" {share(value / whole):>5}", style="dim")
    return made


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}\u2026"


def _bar(length: float) -> str:
    """Return a bar to an eighth of a cell; what is there at all shows."""
    eighths = round(length * 8) or (1 if length > 0 else 0)
    return FULL * (eighths // 8) + LENGTHS[eighths % 8]


def scaling_chart(curve: ScalingCurve, width: int = 80, height: int = 8) -> Text:
    """Return throughput over GPUs as columns on a log scale, with the knee marked.

    Rows below list the figures of each size. If not all sizes fit, the largest are shown.
    """
    points = _fitting(curve, width)
    if not points:
        return Text("no size fits", style="dim")
    cell = _cell_width(points)
    heights = [log(rate) for _, rate, _ in points]
    # The smallest column keeps a visible height.
    low, high = min(heights) - FOOT, max(heights)
    eighths = [round(height * 8 * _share(one, low, high)) for one in heights]
    made = Text(no_wrap=True)
    for row in range(height - 1, -1, -1):
        made.append(f"{'':{LEFT}} ")
        blocks = (BLOCKS[max(0, min(8, filled - row * 8))] for filled in eighths)
        made.append("".join(f"{block * (cell - 1)} " for block in blocks).rstrip(), style="blue")
        made.append("\n")
    made.append(_row("GPUs", [thousands(gpus) for gpus, _, _ in points], cell), style="bold")
    made.append(_row("tokens/s", [si(rate) for _, rate, _ in points], cell))
    made.append(_row("efficiency", [share(part) for _, _, part in points], cell))
    made.append(_row("", [_mark(int(gpus), curve) for gpus, _, _ in points], cell), style="red")
    made.rstrip()
    return made


def _fitting(curve: ScalingCurve, width: int) -> list[tuple[float, float, float]]:
    points = [
        (float(point.gpus), point.tokens_per_s, point.efficiency)
        for point in curve.points
        if point.tokens_per_s > 0
    ]
    most = max(1, (width - LEFT - 1) // _cell_width(points)) if points else 0
    return points[-most:] if most else []


def _cell_width(points: Sequence[tuple[float, float, float]]) -> int:
    return max(5, *(len(thousands(gpus)) for gpus, _, _ in points)) + 1


def _row(name: str, cells: Sequence[str], cell: int) -> str:
    return f"{name:{LEFT}} " + "".join(f"{text:^{cell - 1}} " for text in cells).rstrip() + "\n"


def _mark(gpus: int, curve: ScalingCurve) -> str:
    if gpus == curve.slower_from:
        return "slower"
    return "knee" if gpus == curve.knee and not curve.scales_throughout else ""
