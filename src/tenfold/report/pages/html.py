"""One page for every report: self-contained, readable on paper, in light and in dark.

It loads nothing, which its own security policy makes sure of. Bodies are HTML made with
the functions here, each of which escapes what it is given.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from tenfold.report.charts.svg import clean

Cell = str | int | float
_FIGURE = r"^[<>~-]?\$?\d[\d,.]*( ?[%\w/]+)?( \+ \d+ unpriced)?$"
_NUMERIC = re.compile(rf"{_FIGURE}|^(-|free|unknown)$")
_CODE = re.compile(r"`([^`]+)`")
SHORT = 26
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; --ink: #111827; --muted: #4b5563; --rule: #e5e7eb;
  --page: #f3f4f6; --card: #ffffff; --accent: #2563eb; --mark: #eff6ff; }
@media (prefers-color-scheme: dark) { :root { --ink: #f3f4f6; --muted: #9ca3af;
  --rule: #374151; --page: #0b1120; --card: #111827; --accent: #60a5fa; --mark: #1e293b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 ui-sans-serif, system-ui, 'Segoe UI', 'Liberation Sans', Arial, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 48px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 8px; letter-spacing: -0.01em; }
h2 { font-size: 18px; margin: 0 0 12px; }
p { margin: 0 0 12px; max-width: 76ch; }
.lead { font-size: 18px; margin-bottom: 24px; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: 20px 24px; margin: 0 0 16px; }
.wide { overflow-x: auto; margin: 0 0 12px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
th, td { text-align: left; padding: 6px 14px 6px 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
th { color: var(--muted); font-weight: 600; }
thead th { vertical-align: bottom; }
td.n, th.n { text-align: right; padding-right: 22px;
  font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; }
tr.best td { background: var(--mark); font-weight: 600; }
tbody tr:last-child > * { border-bottom: 0; }
th[scope=row] { width: 200px; }
td.s { white-space: nowrap; }
code { font: 0.9em ui-monospace, 'Liberation Mono', monospace; }
ul { margin: 0 0 12px; padding-left: 20px; max-width: 84ch; }
li { margin-bottom: 6px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(145px, 1fr)); gap: 12px;
  margin: 0 0 16px; }
.tile { background: var(--card); border: 1px solid var(--rule); border-radius: 10px;
  padding: 12px 16px; }
.tile b { display: block; font-size: 21px; line-height: 1.3; white-space: nowrap; }
.tile span { color: var(--muted); font-size: 12.5px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(440px, 100%), 1fr));
  gap: 16px; margin: 0 0 12px; }
figure { margin: 0; width: fit-content; max-width: 100%; overflow: hidden;
  border: 1px solid var(--rule); border-radius: 8px; }
figure svg { display: block; }
@media screen and (prefers-color-scheme: dark) {
  figure svg { filter: invert(1) hue-rotate(180deg); mix-blend-mode: screen; } }
footer { color: var(--muted); font-size: 12.5px; }
@media (max-width: 640px) { main { padding: 20px 12px 32px; } section { padding: 16px; }
  .wide table:has(thead) { min-width: 640px; } }
@media print { :root { --ink: #000; --muted: #444; --rule: #ccc; --page: #fff; --card: #fff;
  --accent: #1d4ed8; --mark: #f3f4f6; }
  body { font-size: 11pt; } main { max-width: none; padding: 0; }
  section { border: 0; padding: 8px 0; } h2 { break-after: avoid; }
  .wide { overflow: visible; } table { font-size: 8pt; }
  th, td, td.n, th.n { padding: 3px 8px 3px 0; } th[scope=row] { width: 130px; }
  .charts { grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(100px, 1fr)); gap: 6px; }
  .tile { padding: 6px 10px; } .tile b { font-size: 13pt; }
  figure, tr, .tile { break-inside: avoid; } * { print-color-adjust: exact; } }
"""


class Section(Struct, frozen=True):
    """A part of a page. The title is text, the body HTML made with the functions here."""

    title: str
    body_html: str


def page(
    title: str, sections: Sequence[Section], *, lead: str = "", top_html: str = "", foot: str = ""
) -> str:
    """Return a whole document: title, a sentence below it, sections, a foot line."""
    below = f'<p class="lead">{marked(lead)}</p>\n' if lead else ""
    end = f"<footer>{marked(foot)}</footer>\n" if foot else ""
    blocks = "".join(
        f"<section>\n<h2>{clean(one.title)}</h2>\n{one.body_html}\n</section>\n" for one in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>{clean(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>{clean(title)}</h1>\n{below}{top_html}{blocks}{end}</main>\n</body>\n</html>\n"
    )


def marked(content: str) -> str:
    """Return a text escaped, with what stands in backticks set as code."""
    return _CODE.sub(r"<code>\1</code>", clean(content))


def prose_html(content: str) -> str:
    """Return a paragraph."""
    return f"<p>{marked(content)}</p>"


def list_html(items: Sequence[str]) -> str:
    """Return a list of sentences."""
    lines = "".join(f"<li>{marked(item)}</li>\n" for item in items)
    return f"<ul>\n{lines}</ul>" if items else ""


def table_html(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], *, best: int | None = None
) -> str:
    """Return a table; columns of figures stand to the right, the row `best` is marked."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    figures = [
        bool(cells) and all(_NUMERIC.match(row[place]) for row in cells)
        for place in range(len(columns))
    ]
    kinds = [
        "n" if right else "s" if all(len(row[place]) <= SHORT for row in cells) else ""
        for place, right in enumerate(figures)
    ]
    head = "".join(_tag("th", name, kind) for name, kind in zip(columns, kinds, strict=True))
    body = "".join(
        ('<tr class="best">' if place == best else "<tr>")
        + "".join(_tag("td", cell, kind) for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for place, row in enumerate(cells)
    )
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n'
        "</table></div>"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 1_000:
        return f"{cell:,.0f}"
    return f"{cell:.4g}"


def _tag(name: str, content: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f"<{name}{named}>{marked(content)}</{name}>"


def pairs_html(pairs: Sequence[tuple[str, str]]) -> str:
    """Return names and what they are, a row each."""
    body = "".join(
        f'<tr><th scope="row">{marked(name)}</th><td>{marked(value)}</td></tr>\n'
        for name, value in pairs
    )
    return f'<div class="wide"><table><tbody>\n{body}</tbody></table></div>' if pairs else ""


def tiles_html(tiles: Sequence[tuple[str, str]]) -> str:
    """Return the figures that matter most, large, each (figure, what it is)."""
    boxes = "".join(
        f'<div class="tile"><b>{clean(figure)}</b><span>{clean(name)}</span></div>\n'
        for figure, name in tiles
    )
    return f'<div class="tiles">\n{boxes}</div>\n' if tiles else ""


def charts_html(*pictures: str) -> str:
    """Return pictures side by side where there is room. They are SVG of our own, taken as is."""
    figures = "".join(f"<figure>\n{one}</figure>\n" for one in pictures if one)
    return f'<div class="charts">\n{figures}</div>' if figures else ""
