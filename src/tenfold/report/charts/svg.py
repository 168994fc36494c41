"""SVG primitives of the charts: text, lines and boxes.

A picture is self-contained and has a white background, so it looks the same on a dark page.
All text is escaped here and nowhere else.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Literal

from msgspec import Struct

from tenfold.report.visible import visible

Anchor = Literal["start", "middle", "end"]
INK, MUTED, FAINT, GRID, CARD = "#111827", "#4b5563", "#9ca3af", "#e5e7eb", "#ffffff"
ACCENT, WARN, IDEAL = "#2563eb", "#dc2626", "#9ca3af"
FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
# Shares of the font size that letters take in the fonts at hand, rounded up.
NARROW, WIDE = frozenset("iljtfrI.,:;'|!()[] -"), frozenset("mwMW%@&")
NARROW_WIDTH, TYPICAL_WIDTH, WIDE_WIDTH, CAPITAL_WIDTH = 0.38, 0.61, 0.95, 0.7
PAD = 16
LEGEND_ROW = 18
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class TextStyle(Struct, frozen=True):
    """The style of a text."""

    size: int
    fill: str
    bold: bool = False


TITLE, SUBTITLE = TextStyle(15, INK, True), TextStyle(12, MUTED)
TICK, AXIS, LABEL = TextStyle(11, MUTED), TextStyle(11, MUTED, True), TextStyle(11, INK)


class Card(Struct, frozen=True, kw_only=True):
    """A picture's frame and words."""

    title: str
    subtitle: str = ""
    width: int = 640
    height: int = 360


def clean(content: str) -> str:
    """Return a text that is safe in HTML and XML, also inside of quotes, and reads as it is."""
    return escape(_NOT_XML.sub("\ufffd", visible(content)), quote=True)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal, never as -0."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def width_of(content: str, look: TextStyle = TICK) -> float:
    """Return about how wide a text is; fonts differ, so leave room."""
    widths = sum(_char_width(char) for char in content)
    return widths * look.size * (1.1 if look.bold else 1.0)


def _char_width(char: str) -> float:
    if char in NARROW:
        return NARROW_WIDTH
    if char in WIDE:
        return WIDE_WIDTH
    return CAPITAL_WIDTH if char.isupper() else TYPICAL_WIDTH


def shortened(content: str, width: float, look: TextStyle = TICK) -> str:
    """Return a text cut to a width, with an ellipsis where something is left out."""
    if width_of(content, look) <= width:
        return content
    kept = len(content)
    while kept > 1 and width_of(content[:kept], look) + look.size > width:
        kept -= 1
    return f"{content[:kept].rstrip()}\u2026"


def ink_on(fill: str) -> str:
    """Return black or white, whichever reads better on a colour."""
    red, green, blue = (int(fill[place : place + 2], 16) / 255 for place in (1, 3, 5))
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.58 else CARD


def text(x: float, y: float, content: str, look: TextStyle = TICK, anchor: Anchor = "start") -> str:
    """Return a line of text that stands on `y`."""
    weight = " font-weight='600'" if look.bold else ""
    side = "" if anchor == "start" else f" text-anchor='{anchor}'"
    return (
        f"<text x='{number(x)}' y='{number(y)}' font-size='{look.size}'{weight}{side} "
        f"fill='{look.fill}'>{clean(content)}</text>"
    )


def line(start: tuple[float, float], end: tuple[float, float], stroke: str, dash: str = "") -> str:
    """Return a thin straight line."""
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    (x1, y1), (x2, y2) = start, end
    return (
        f"<line x1='{number(x1)}' y1='{number(y1)}' x2='{number(x2)}' y2='{number(y2)}' "
        f"stroke='{stroke}'{dashes}/>"
    )


def path(points: Iterable[tuple[float, float]], stroke: str, dash: str = "") -> str:
    """Return a line through points."""
    dashes = f" stroke-dasharray='{dash}'" if dash else ""
    steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return (
        f"<polyline points='{steps}' fill='none' stroke='{stroke}' stroke-width='2' "
        f"stroke-linejoin='round' stroke-linecap='round'{dashes}/>"
    )


def box(at: tuple[float, float], size: tuple[float, float], fill: str, hint: str = "") -> str:
    """Return a filled box, with a hint where a pointer rests on it."""
    (x, y), (width, height) = at, size
    shape = (
        f"<rect x='{number(x)}' y='{number(y)}' width='{number(max(0.0, width))}' "
        f"height='{number(max(0.0, height))}' fill='{fill}'"
    )
    return f"{shape}><title>{clean(hint)}</title></rect>" if hint else f"{shape}/>"


def dot(at: tuple[float, float], radius: float, fill: str, hint: str, opacity: float = 1) -> str:
    """Return a round mark with a hint."""
    faded = "" if opacity == 1 else f" fill-opacity='{opacity:g}'"
    return (
        f"<circle cx='{number(at[0])}' cy='{number(at[1])}' r='{number(radius)}' fill='{fill}'"
        f"{faded} stroke='{CARD}' stroke-width='1.5'><title>{clean(hint)}</title></circle>"
    )


def head_height(card: Card) -> float:
    """Return where the room below title and subtitle begins."""
    return PAD + 20 + (18 if card.subtitle else 0)


def legend(names: Sequence[tuple[str, str]], at: tuple[float, float], width: float) -> list[str]:
    """Return coloured names in rows. `legend_height` says how much room they take."""
    parts: list[str] = []
    for row, entries in enumerate(_legend_rows(names, width)):
        x, y = at[0], at[1] + row * LEGEND_ROW
        for name, fill in entries:
            parts.append(box((x, y - 9), (10, 10), fill))
            parts.append(text(x + 15, y, name))
            x += _entry_width(name)
    return parts


def legend_height(names: Sequence[tuple[str, str]], width: float) -> float:
    """Return how much room the legend of these names takes."""
    return len(_legend_rows(names, width)) * LEGEND_ROW


def _entry_width(name: str) -> float:
    return 15 + width_of(name) + 16


def _legend_rows(names: Sequence[tuple[str, str]], width: float) -> list[list[tuple[str, str]]]:
    rows: list[list[tuple[str, str]]] = []
    used = width
    for name, fill in names:
        shown = shortened(name, width - 31)
        if used + _entry_width(shown) > width or not rows:
            rows.append([])
            used = 0.0
        rows[-1].append((shown, fill))
        used += _entry_width(shown)
    return rows


def picture(card: Card, description: str, parts: Iterable[str]) -> str:
    """Return the whole picture. `description` is its text for screen readers."""
    width, height = card.width, card.height
    head = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' role='img' aria-label='{clean(card.title)}' "
        f'font-family="{FONT}" style="max-width:100%;height:auto">',
        f"<title>{clean(card.title)}</title>",
        f"<desc>{clean(description)}</desc>",
        f"<rect width='{width}' height='{height}' rx='8' fill='{CARD}'/>",
        text(PAD, PAD + 11, shortened(card.title, width - 2 * PAD, TITLE), TITLE),
    ]
    if card.subtitle:
        room = width - 2 * PAD
        head.append(text(PAD, PAD + 30, shortened(card.subtitle, room, SUBTITLE), SUBTITLE))
    return "\n".join([*head, *parts, "</svg>"]) + "\n"
