"""Read the kernel summary of Nsight Systems: `nsys stats -r cuda_gpu_kern_sum -f csv`.

Older versions name some columns otherwise and have no median; the mean stands in for it.
"""

import csv
import io
from collections.abc import Iterator
from math import isfinite

from tenfold.files.measured.reading import Reading
from tenfold.model.baseline import Kernel, Kernels
from tenfold.model.errors import InputError

MARK = "Total Time (ns)"
NANO = 1e-9
COLUMNS = {
    "calls": ("Instances",),
    "mean": ("Avg (ns)", "Average (ns)", "Average"),
    "median": ("Med (ns)", "Med", "Avg (ns)", "Average (ns)", "Average"),
    "deviation": ("StdDev (ns)", "StdDev"),
    "name": ("Name",),
}


def read_nsys_stats(text: str, file: str) -> Reading:
    """Return the kernels of a summary."""
    lines = text.splitlines()
    # Progress lines of `nsys stats` may stand before the table.
    above = next((at for at, line in enumerate(lines) if MARK in line), 0)
    rows = _rows(lines[above:], file, above)
    _, first = next(rows, (0, list[str]()))
    header = [cell.strip() for cell in first]
    places = {what: _place(names, header) for what, names in COLUMNS.items()}
    missing = [what for what in ("calls", "mean", "name") if places[what] is None]
    if missing:
        raise InputError(
            "missing-column",
            f"the header has no column `{COLUMNS[missing[0]][0]}`",
            "create it with `nsys stats -r cuda_gpu_kern_sum -f csv`",
            file=file,
            line=above + 1,
        )
    kernels: dict[str, Kernel] = {}
    for line, cells in rows:
        if len(cells) < len(header):
            break
        kernel = _kernel(cells, places, file, line)
        if kernel is not None:
            kernels.setdefault(kernel.name, kernel)
    if not kernels:
        raise InputError(
            "no-kernels",
            f"`{file}` lists no kernels",
            "create it with `nsys stats -r cuda_gpu_kern_sum -f csv`",
            file=file,
        )
    return Reading(measured=Kernels(kernels=tuple(kernels.values())))


def _rows(lines: list[str], file: str, above: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of the table, each with its line in the file."""
    rows = csv.reader(io.StringIO("\n".join(lines), newline=""))
    try:
        for cells in rows:
            yield above + rows.line_num, cells
    except csv.Error as error:
        raise InputError(
            "syntax",
            f"`{file}` is not CSV: {error}",
            "create it with `nsys stats -r cuda_gpu_kern_sum -f csv`",
            file=file,
            line=above + rows.line_num,
        ) from None


def _place(names: tuple[str, ...], header: list[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _kernel(cells: list[str], places: dict[str, int | None], file: str, line: int) -> Kernel | None:
    def figure(what: str) -> float:
        place = places[what]
        text = "0" if place is None else cells[place].strip() or "0"
        try:
            value = float(text.replace(",", ""))
        except ValueError:
            value = -1.0
        if not isfinite(value) or value < 0:
            raise InputError(
                "not-a-number",
                f"`{text}` should be a number",
                "use the unchanged output of `nsys stats`",
                file=file,
                line=line,
            )
        return value

    name, calls = cells[places["name"] or 0].strip(), int(figure("calls"))
    if not name or not calls:
        return None
    return Kernel(
        name=name,
        calls=calls,
        mean_s=figure("mean") * NANO,
        median_s=figure("median") * NANO,
        deviation_s=figure("deviation") * NANO,
    )
