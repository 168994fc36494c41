"""Options and output that the commands on tiers share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tenfold.cli.output import complain, print_json, show
from tenfold.cli.quantities import parse_number
from tenfold.model.errors import NoAnswer
from tenfold.report.figures import file_bytes

if TYPE_CHECKING:
    from tenfold.objects.tiers.operations.progress import Progress

Folder = Annotated[Path, Parameter(name="--dir", help="Directory of the object store")]
TierFile = Annotated[
    Path | None, Parameter(help="Tier file of the server (default: tiers.toml in --dir)")
]
Limit = Annotated[
    str,
    Parameter(help="Bandwidth limit in bytes per second, such as 200M (default: none)"),
]


def bytes_per_s(limit: str) -> float:
    """Return the rate of `--limit`; 0 without one."""
    hint = "write bytes per second, such as 200M"
    return parse_number(limit, "--limit", hint) if limit else 0.0


def show_progress(done: "Progress", *, as_json: bool, **more: object) -> None:
    """Print what an operation did; raise if some of it failed."""
    if as_json:
        print_json({**_plain(done), **more})
    else:
        show(
            f"{done.moved:,} of {done.blobs:,} blobs moved,"
            f" {file_bytes(done.bytes_written)} written"
        )
        for one in done.problems:
            complain(f"warning: {one.key}: {one.problem}")
    if done.failed:
        raise NoAnswer(
            "objects-not-moved",
            f"{done.failed:,} blobs could not be moved",
            "look at the warnings, then run the same command again: it continues",
        )


def _plain(done: "Progress") -> dict[str, object]:
    return {
        "blobs": done.blobs,
        "moved": done.moved,
        "replaced_meanwhile": done.replaced_meanwhile,
        "bytes_written": done.bytes_written,
        "failed": done.failed,
        "problems": done.problems,
    }
