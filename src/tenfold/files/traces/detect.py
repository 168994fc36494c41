"""List the trace formats, detect the format of a file, and read it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from tenfold.files.traces.columns import COLUMNS as JOB_COLUMNS
from tenfold.files.traces.csv_table import read_plain_bytes
from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.trace import JobTrace
from tenfold.model.errors import InputError

TraceFormat = Literal[
    "auto",
    "jobs",
    "philly",
    "helios",
    "acme",
    "alibaba-2020",
    "alibaba-2023",
    "sacct",
    "kubernetes",
]
AUTO: str = get_args(TraceFormat)[0]
FORMATS: tuple[str, ...] = get_args(TraceFormat)[1:]
_HEADERS: dict[str, tuple[str, ...]] = {
    "jobs": ("gpus", "submit_s"),
    "alibaba-2023": ("num_gpu", "creation_time"),
    "acme": ("gpu_num", "submit_time", "type"),
    "helios": ("gpu_num", "submit_time", "vc"),
    "sacct": ("JobID", "Submit"),
}
_SACCT_COLUMNS = (
    "JobID,User,Account,QOS,State,Submit,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES,"
    "NNodes,Priority"
)
_PAI_WIDTHS = (6, 10)
_SNIFF_BYTES = 64 * 1024


def read_trace(paths: Path | Sequence[Path], format: str = AUTO) -> JobTrace:
    """Return the jobs of a trace in any known format; some formats have several files."""
    files = [paths] if isinstance(paths, Path) else list(paths)
    if not files:
        raise InputError("no-file", "no trace file given", "give the trace file")
    known = format if format != AUTO else detect(files)
    if known not in FORMATS:
        raise InputError(
            "unknown-format",
            f"unknown trace format `{format}`",
            f"use one of {AUTO}, {', '.join(FORMATS)}",
        )
    if known == "alibaba-2020":
        from tenfold.files.traces.public.alibaba_2020 import read_pai_files  # noqa: PLC0415

        return read_pai_files(files)
    if len(files) > 1:
        raise InputError(
            "one-file",
            f"format `{known}` takes one file, got {len(files)}",
            "import one file at a time",
            file=str(files[1]),
        )
    return _read_one(files[0], known)


def detect(files: Sequence[Path]) -> str:
    """Return the format of these files, or raise if it is unknown."""
    first = files[0]
    if first.name.lower().endswith(".parquet"):
        return "jobs"
    start = _start(first)
    if start[:1] == b"[" or (start[:1] == b"{" and b"attempts" in start):
        return "philly"
    if start[:1] == b"{" and b'"apiVersion"' in start:
        return "kubernetes"
    line = _first_line(start)
    for name, needed in _HEADERS.items():
        cells = [cell.strip().strip('"') for cell in line.split("|" if name == "sacct" else ",")]
        if all(column in cells for column in needed):
            return name
    cells = line.split(",")
    if len(cells) in _PAI_WIDTHS and _is_number(cells[4 if len(cells) == 6 else 2]):
        return "alibaba-2020"
    check_parsable(first, line)
    raise InputError(
        "unknown-trace",
        f"unknown trace format: `{first}` starts with `{line[:60]}`",
        "convert it with `tenfold sim import FORMAT FILE --out jobs.csv`, or use a table with the "
        f"columns {', '.join(JOB_COLUMNS)}; formats: {', '.join(FORMATS)}",
        file=str(first),
        line=1,
    )


def _start(path: Path) -> bytes:
    return read_plain_bytes(path)[:_SNIFF_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()


def _first_line(start: bytes) -> str:
    return start.split(b"\n", 1)[0].decode("utf-8", errors="replace").strip()


def check_parsable(path: Path, line: str) -> None:
    """Raise if the first line of a file is that of `sacct` without `--parsable2`."""
    words = line.replace("|", " ").split()
    # Of the columns that are needed, `sacct` prints only this one unless it is asked for more.
    if "|" not in line.rstrip("|") and "," not in line and "JobID" in words:
        more = "" if "Submit" in words else f" and `--format={_SACCT_COLUMNS}`"
        raise InputError(
            "not-parsable",
            f"`{path}` is the output of `sacct` in columns, which cuts long values off",
            f"run `sacct` with `--parsable2` (`-P`){more}",
            file=str(path),
            line=1,
        )


def _read_one(path: Path, format: str) -> JobTrace:
    # One reader is needed, and not what the others load.
    if format == "philly":
        from tenfold.files.traces.public.philly import read_philly  # noqa: PLC0415

        return read_philly(path)
    if format == "helios":
        from tenfold.files.traces.public.helios import read_helios  # noqa: PLC0415

        return read_helios(path)
    if format == "acme":
        from tenfold.files.traces.public.acme import read_acme  # noqa: PLC0415

        return read_acme(path)
    if format == "alibaba-2023":
        from tenfold.files.traces.public.alibaba_2023 import read_openb_pods  # noqa: PLC0415

        return read_openb_pods(path)
    if format == "sacct":
        from tenfold.files.traces.sacct import read_sacct  # noqa: PLC0415

        check_parsable(path, _first_line(_start(path)))
        return read_sacct(path)
    if format == "kubernetes":
        from tenfold.files.traces.kubernetes import read_kubernetes  # noqa: PLC0415

        return read_kubernetes(path)
    return read_jobs(path)


def _is_number(cell: str) -> bool:
    return not cell or cell.replace(".", "", 1).isdigit()
