"""Read what NCCL-tests print (`all_reduce_perf` and its kin; RCCL's print the same).

A row ends in eight cells: time, algorithm bandwidth, bus bandwidth and wrong values, out
of place and then in place. What stands before them differs from one collective to another.
"""

import re

from tenfold.files.measured.reading import Reading
from tenfold.model.baseline import Transfer, Transfers
from tenfold.model.errors import InputError

CELLS = 8
MARK = "busbw"
_OPERATION = re.compile(r"\b(\w+)_perf\b")
_RANK = re.compile(r"^#\s+Rank\s+\d+ .*\bdevice\s+\d+\s+\[[^\]]*\]\s+(?P<name>.+?)\s*$")


def read_nccl_tests(text: str, file: str) -> Reading:
    """Return the timings of a network test and the GPUs that took part."""
    transfers: list[Transfer] = []
    parts: list[str] = []
    operation = ""
    for number, line in enumerate(text.splitlines(), start=1):
        rank = _RANK.match(line)
        if rank:
            parts.append(rank["name"])
        elif not operation and (named := _OPERATION.search(line)):
            operation = named[1]
        cells = line.split()
        if cells and cells[0].isdecimal() and len(cells) > CELLS:
            transfers.extend(_row(cells, file, number))
    if not transfers:
        raise InputError(
            "no-transfers",
            f"`{file}` contains no results of a network test",
            "use the complete output of all_reduce_perf, including its header",
            file=file,
        )
    keys: dict[str, str] = {}
    if parts:
        keys["gpus"] = str(len(parts))
    if len(dict.fromkeys(parts)) == 1:
        keys["accelerator"] = parts[0]
    measured = Transfers(operation=operation, transfers=tuple(transfers))
    return Reading(measured=measured, keys=keys)


def _row(cells: list[str], file: str, line: int) -> list[Transfer]:
    """Return both timings of a row; a size of nothing and a timing of nothing tell nothing."""
    size, rest = int(cells[0]), cells[-CELLS:]
    found: list[Transfer] = []
    for in_place, (time_us, _, bus, _) in ((False, rest[:4]), (True, rest[4:])):
        if time_us == "N/A":
            continue
        try:
            timing, bandwidth = float(time_us), float(bus)
        except ValueError:
            raise InputError(
                "not-a-number",
                f"`{time_us}` and `{bus}` should be a time and a bandwidth",
                "use the unchanged output of the test",
                file=file,
                line=line,
            ) from None
        if size > 0 and 0 < timing < float("inf"):
            found.append(
                Transfer(size_bytes=size, in_place=in_place, time_us=timing, bus_gb_per_s=bandwidth)
            )
    return found
