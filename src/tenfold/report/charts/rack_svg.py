"""The rack map as an SVG picture, with nothing that needs the network to be shown."""

from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.report.charts.rack_map import COLOURS, RackView
from tenfold.report.charts.svg import clean

CELL_W, CELL_H, GAP, TOP, LEFT = 132, 26, 6, 60, 16
PER_ROW, CELLS_MAX, GPUS_MAX = 6, 8, 8
LEGEND_W, LINE_H = 330, 20
FONT = "font-family='ui-sans-serif, system-ui, sans-serif'"


def rack_map_svg(spec: FleetSpec, views: list[RackView], racks: int) -> str:
    """Return a picture of racks side by side: a bar of power, then a box a node."""
    columns = min(PER_ROW, max(2, len(views)))
    rows = [views[start : start + PER_ROW] for start in range(0, len(views), PER_ROW)]
    tops = [TOP]
    for row in rows:
        tallest = max(min(len(view.cells), CELLS_MAX + 1) for view in row)
        tops.append(tops[-1] + tallest * (CELL_H + GAP) + 54)
    width = LEFT * 2 + columns * (CELL_W + 24) - 24
    legend = _legend(spec, tops[-1] - 8, max(1, (width - LEFT) // LEGEND_W))
    height = tops[-1] + LINE_H * (-(-len(spec.pools) // max(1, (width - LEFT) // LEGEND_W))) + 8
    hidden = f", {len(views)} of {racks:,} racks" if racks > len(views) else ""
    title = clean(f"{spec.name}: {spec.gpus:,} GPUs on {spec.nodes:,} nodes{hidden}")
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}' "
        f"viewBox='0 0 {width} {height}' role='img' aria-label='{title}'>",
        f"<rect width='{width}' height='{height}' rx='8' fill='#ffffff'/>",
        _text(LEFT, 30, title, 16, "#111827", bold=True),
    ]
    for row, top in zip(rows, tops, strict=False):
        for column, view in enumerate(row):
            parts.extend(_rack(view, LEFT + column * (CELL_W + 24), top))
    return "\n".join([*parts, *legend, "</svg>"]) + "\n"


def _text(x: int, y: int, text: str, size: int, fill: str, *, bold: bool = False) -> str:
    weight = " font-weight='600'" if bold else ""
    return f"<text x='{x}' y='{y}' {FONT} font-size='{size}'{weight} fill='{fill}'>{text}</text>"


def _rack(view: RackView, x: int, y: int) -> list[str]:
    load = min(1.0, view.power_kw / view.power_kw_limit)
    colour = "#ef4444" if view.power_kw > view.power_kw_limit else "#6b7280"
    power = f"{view.power_kw:.1f} of {view.power_kw_limit:g} kW"
    parts = [
        _text(x, y, clean(view.name), 12, "#374151", bold=True),
        _text(x, y + 15, power, 11, colour),
        f"<rect x='{x}' y='{y + 20}' width='{CELL_W}' height='4' rx='2' fill='#e5e7eb'/>",
        f"<rect x='{x}' y='{y + 20}' width='{CELL_W * load:.1f}' height='4' rx='2' "
        f"fill='{colour}'/>",
    ]
    for place, (pool, gpus) in enumerate(view.cells[:CELLS_MAX]):
        parts.extend(_node(x, y + 30 + place * (CELL_H + GAP), COLOURS[pool % len(COLOURS)], gpus))
    if len(view.cells) > CELLS_MAX:
        more = f"and {len(view.cells) - CELLS_MAX} more"
        parts.append(_text(x + 8, y + 46 + CELLS_MAX * (CELL_H + GAP), more, 11, "#6b7280"))
    return parts


def _node(x: int, y: int, fill: str, gpus: int) -> list[str]:
    parts = [
        f"<rect x='{x}' y='{y}' width='{CELL_W}' height='{CELL_H}' rx='5' "
        f"fill='{fill}' fill-opacity='0.14' stroke='{fill}'/>"
    ]
    if gpus == 0 or gpus > GPUS_MAX:
        label = "CPU" if gpus == 0 else f"{gpus} GPUs"
        return [*parts, _text(x + 8, y + 17, label, 11, "#374151")]
    parts.extend(
        f"<rect x='{x + 8 + gpu * 15}' y='{y + 8}' width='10' height='10' rx='2' fill='{fill}'/>"
        for gpu in range(gpus)
    )
    return parts


def _legend(spec: FleetSpec, y: int, columns: int) -> list[str]:
    parts: list[str] = []
    for place, pool in enumerate(spec.pools):
        left = LEFT + (place % columns) * LEGEND_W
        top = y + place // columns * LINE_H
        fill = COLOURS[place % len(COLOURS)]
        parts.append(f"<rect x='{left}' y='{top}' width='11' height='11' rx='2' fill='{fill}'/>")
        parts.append(_text(left + 17, top + 10, clean(_label(pool)), 12, "#374151"))
    return parts


def _label(pool: Pool) -> str:
    if not pool.gpus_per_node:
        return f"{pool.id}: {pool.nodes:,} CPU nodes"
    return f"{pool.id}: {pool.nodes:,} nodes of {pool.gpus_per_node} x {pool.accelerator}"
