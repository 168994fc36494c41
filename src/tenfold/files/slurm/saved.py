"""Read saved output of Slurm's commands: one file, or a folder of them, told apart by content."""

from pathlib import Path

from msgspec import Struct

from tenfold.files.core.document import read_text
from tenfold.model.errors import InputError

SIZE_MAX_BYTES = 2 * 1024**3
HEAD = 4_096
HINT = (
    "save `scontrol show nodes`, `scontrol show partitions -o`, `scontrol show config`, "
    "`squeue --json` and `sacct -aXDP -S 2026-01-01 --format=ALL` into one folder"
)


class SavedOutput(Struct, kw_only=True):
    """The texts and files of one cluster."""

    nodes: str = ""
    partitions: str = ""
    config: str = ""
    queue: str = ""
    bookings: str = ""
    accounting: list[Path] = []
    conf: Path | None = None
    files: list[str] = []


def read_saved(folder: Path) -> SavedOutput:
    """Return what a folder has; a file of unknown content is refused, not skipped."""
    saved = SavedOutput(accounting=[], files=[])
    if not folder.is_dir():
        raise InputError("cannot-read", f"no such folder: `{folder}`", HINT, file=str(folder))
    for path in sorted(one for one in folder.iterdir() if one.is_file()):
        if path.name.startswith("."):
            continue
        kind = _kind(path)
        saved.files.append(path.name)
        if kind == "accounting":
            saved.accounting.append(path)
        elif kind == "conf":
            saved.conf = path
        else:
            setattr(saved, kind, read_text(path, SIZE_MAX_BYTES))
    if not saved.accounting and not saved.nodes:
        raise InputError(
            "not-slurm-output",
            f"`{folder}` has neither accounting nor nodes of a Slurm cluster",
            HINT,
            file=str(folder),
        )
    return saved


def is_saved_accounting(path: Path) -> bool:
    """Return whether a file is the output of `sacct`."""
    if path.name.lower().endswith((".parquet", ".gz")):
        return False
    with path.open("rb") as stream:
        first = stream.read(HEAD).decode("utf-8", "replace").partition("\n")[0]
    return "|" in first and "JobID" in first and "Submit" in first


def _kind(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(HEAD).decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    first = head.split("\n", 1)[0]
    if "|" in first and "JobID" in first and "Submit" in first:
        return "accounting"
    if head.startswith("{"):
        text = read_text(path, SIZE_MAX_BYTES)
        return "queue" if '"jobs"' in text[:200_000] else "nodes"
    if "NodeName=" in first and "Arch=" in first + head:
        return "nodes"
    if first.startswith("JobId="):
        return "queue"
    if first.startswith("ReservationName="):
        return "bookings"
    if first.startswith("PartitionName=") and "TotalNodes=" in head:
        return "partitions"
    if first.startswith("Configuration data as of"):
        return "config"
    if "ClusterName" in head or "PartitionName" in head or "SlurmctldHost" in head:
        return "conf"
    raise InputError(
        "not-slurm-output",
        f"`{path}` starts with `{first[:60]}`, which no command of Slurm prints",
        HINT,
        file=str(path),
        line=1,
    )
