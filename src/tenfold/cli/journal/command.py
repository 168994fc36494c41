"""`tenfold journal`: look after the journal of a control plane, at rest or while it runs."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json, show
from tenfold.cli.up.state_dir import StateDirOption
from tenfold.client.endpoint import STATE_DIR, find_state_dir
from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from tenfold.journal.store import Store

app = App(
    name="journal",
    help="Look after the journal: figures, backup, check, older events moved out.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

FILE = "journal.db"
HISTORY = "history"
URL = "TENFOLD_JOURNAL"

Journal = Annotated[
    str,
    Parameter(env_var=URL, help="URL of the journal, where it is not a file in the state folder."),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@app.command(name="info")
def info_command(
    *, home: StateDirOption = None, journal: Journal = "", as_json: Json = False
) -> None:
    """Print what the journal holds: events, snapshots, jobs, its size, who writes it."""
    from tenfold.cli.journal.render import show_info  # noqa: PLC0415
    from tenfold.journal.inspect import inspect  # noqa: PLC0415

    with _opened(home, journal) as store:
        result = inspect(store)
    print_json(result) if as_json else show_info(result)


@app.command(name="backup")
def backup_command(
    file: Annotated[Path, Parameter(help="Where the copy goes.")],
    *,
    home: StateDirOption = None,
    journal: Journal = "",
    force: Annotated[bool, Parameter(negative="", help="Write over a file.")] = False,
    as_json: Json = False,
) -> None:
    """Copy the journal as it is at one moment, and check the copy; it may be in use."""
    from tenfold.journal.backup import back_up  # noqa: PLC0415
    from tenfold.report.figures import file_bytes  # noqa: PLC0415

    with _opened(home, journal) as store:
        back_up(store, file, force=force)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        show(f"`{file}` is a whole copy of the journal, {file_bytes(size)}")


@app.command(name="verify")
def verify_command(
    *, home: StateDirOption = None, journal: Journal = "", as_json: Json = False
) -> None:
    """Check that all the journal holds follows from its events, and that none is missing."""
    from tenfold.cli.journal.render import show_verified  # noqa: PLC0415
    from tenfold.journal.verify import verify  # noqa: PLC0415

    with _opened(home, journal) as store:
        result = verify(store)
    print_json(result) if as_json else show_verified(result)
    if not result.is_valid:
        raise Exit(1)


@app.command(name="compact")
def compact_command(
    *,
    keep_days: Annotated[
        float, Parameter(help="Days that stay in the journal. 30, as `tenfold up` keeps them.")
    ] = 30,
    home: StateDirOption = None,
    journal: Journal = "",
    as_json: Json = False,
) -> None:
    """Move older events into bundles beside the journal, part by part; jobs that go on stay.

    `tenfold up` does so by itself. At rest, a file is also made smaller.
    """
    from msgspec.structs import asdict  # noqa: PLC0415

    from tenfold.cli.journal.render import show_moved  # noqa: PLC0415
    from tenfold.clock.wall import now_ms  # noqa: PLC0415
    from tenfold.journal.compaction import DAY_MS, compact_once  # noqa: PLC0415
    from tenfold.journal.retention import Export  # noqa: PLC0415

    if keep_days < 0:
        raise InputError(
            "wrong-value", "--keep-days is less than 0", "give days", field="--keep-days"
        )
    folder = find_state_dir(home).absolute()
    older_ms = now_ms() - round(keep_days * DAY_MS)
    moved: list[Export] = []
    with _opened(home, journal) as store:
        while (part := compact_once(store, folder / HISTORY, older_ms)) is not None:
            moved.append(part)
        freed = _shrunk(store, folder)
    if as_json:
        result = [{**asdict(one), "file": str(one.file)} for one in moved]
        print_json({"moved": result, "bytes_freed": freed})
    else:
        show_moved(moved, freed)


def _shrunk(store: "Store", home: Path) -> int | None:
    """Give free pages of a file back to the disk; None while a control plane runs."""
    from tenfold.cli.up.state_dir import lock_state_dir  # noqa: PLC0415
    from tenfold.journal.backup import shrink  # noqa: PLC0415
    from tenfold.model.errors import Refused  # noqa: PLC0415

    if store.file is None:
        return None
    try:
        with lock_state_dir(home):
            return shrink(store)
    except Refused:
        return None


@contextmanager
def _opened(home: Path | None, journal: str) -> Generator["Store", None, None]:
    from tenfold.journal.store import open_store  # noqa: PLC0415

    where = journal or str(find_state_dir(home).absolute() / FILE)
    if "://" not in where and not Path(where).is_file():
        raise InputError(
            "no-journal",
            f"there is no journal `{where}`",
            f"name the state folder with --state-dir or {STATE_DIR}, or a database with --journal",
            file=where,
        )
    store = open_store(where)
    try:
        yield store
    finally:
        store.close()
