"""The rack map as an SVG picture, with nothing that needs the network to be shown."""

from html import escape

from tenfold.model.fleet_spec import FleetSpec
from tenfold.report.rack_map import COLOURS, RackView

CELL_W, CELL_H, GAP, TOP, LEFT = 132, 26, 6, 64, 16
PER_ROW = 6
FONT = "font-family='ui-sans-serif, system-ui, sans-serif'"


def rack_map_svg(spec: FleetSpec, views: list[RackView], title: str) -> str:
    """Return a picture of racks side by side: a bar of power, then a box a node."""
    columns = min(PER_ROW, max(1, len(views)))
    rows = [views[start : start + PER_ROW] for start in range(0, len(views), PER_ROW)]
    heights = [max((len(view.cells) for view in row), default=0) for row in rows]
    row_tops = [TOP]
    for height in heights:
        row_tops.append(row_tops[-1] + height * (CELL_H + GAP) + 74)
    width = LEFT * 2 + columns * (CELL_W + 24) - 24
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{row_tops[-1] + 28}' "
        f"viewBox='0 0 {width} {row_tops[-1] + 28}' role='img' aria-label='{escape(title)}'>",
        f"<rect width='{width}' height='{row_tops[-1] + 28}' fill='#ffffff'/>",
        f"<text x='{LEFT}' y='30' {FONT} font-size='17' font-weight='600' "
        f"fill='#111827'>{escape(title)}</text>",
    ]
    for row, top in zip(rows, row_tops, strict=False):
        for column, view in enumerate(row):
            parts.extend(_rack(view, LEFT + column * (CELL_W + 24), top))
    parts.extend(_legend(spec, row_tops[-1] + 8))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _rack(view: RackView, x: int, y: int) -> list[str]:
    load = min(1.0, view.power_kw / view.power_kw_limit)
    colour = "#ef4444" if view.power_kw > view.power_kw_limit else "#6b7280"
    parts = [
        f"<text x='{x}' y='{y}' {FONT} font-size='12' font-weight='600' "
        f"fill='#374151'>{escape(view.name)}</text>",
        f"<text x='{x}' y='{y + 15}' {FONT} font-size='11' fill='{colour}'>"
        f"{view.power_kw:.1f} of {view.power_kw_limit:g} kW</text>",
        f"<rect x='{x}' y='{y + 20}' width='{CELL_W}' height='4' rx='2' fill='#e5e7eb'/>",
        f"<rect x='{x}' y='{y + 20}' width='{CELL_W * load:.1f}' height='4' rx='2' "
        f"fill='{colour}'/>",
    ]
    for place, (pool, gpus) in enumerate(view.cells):
        top = y + 30 + place * (CELL_H + GAP)
        fill = COLOURS[pool % len(COLOURS)]
        parts.append(
            f"<rect x='{x}' y='{top}' width='{CELL_W}' height='{CELL_H}' rx='5' "
            f"fill='{fill}' fill-opacity='0.14' stroke='{fill}'/>"
        )
        shown = min(gpus, 8)
        parts.extend(
            f"<rect x='{x + 8 + gpu * 15}' y='{top + 8}' width='10' height='10' rx='2' "
            f"fill='{fill}'/>"
            for gpu in range(shown)
        )
    return parts


def _legend(spec: FleetSpec, y: int) -> list[str]:
    parts: list[str] = []
    x = LEFT
    for place, pool in enumerate(spec.pools[: len(COLOURS)]):
        label = f"{pool.id}: {pool.nodes:,} x {pool.gpus_per_node} {pool.accelerator or 'CPU only'}"
        fill = COLOURS[place % len(COLOURS)]
        parts.append(f"<rect x='{x}' y='{y}' width='11' height='11' rx='2' fill='{fill}'/>")
        parts.append(
            f"<text x='{x + 17}' y='{y + 10}' {FONT} font-size='12' "
            f"fill='#374151'>{escape(label)}</text>"
        )
        x += 40 + len(label) * 7
    return parts
