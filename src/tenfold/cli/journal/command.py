"""`tenfold journal`: inspect, back up, verify and compact the journal, live or offline."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import Force, Json
from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json, show
from tenfold.cli.up.state_dir import StateDirOption
from tenfold.client.endpoint import STATE_DIR, find_state_dir
from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from tenfold.journal.store import Store

app = App(
    name="journal",
    help="Inspect, back up, verify and compact the journal.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

FILE = "journal.db"
HISTORY = "history"
URL = "TENFOLD_JOURNAL"

Journal = Annotated[
    str,
    Parameter(
        env_var=URL, help="Database URL of the journal (default: a file in the state directory)"
    ),
]


@app.command(name="info")
def info_command(
    *, home: StateDirOption = None, journal: Journal = "", as_json: Json = False
) -> None:
    """Show the journal's size, events, snapshots, jobs and last writer."""
    from tenfold.cli.journal.render import show_info  # noqa: PLC0415
    from tenfold.journal.inspect import inspect  # noqa: PLC0415

    with _opened(home, journal) as store:
        result = inspect(store)
    print_json(result) if as_json else show_info(result)


@app.command(name="backup")
def backup_command(
    file: Annotated[Path, Parameter(help="Output file")],
    *,
    home: StateDirOption = None,
    journal: Journal = "",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Make a consistent point-in-time copy of the journal and verify it.

    This is safe while the control plane is running.
    """
    from tenfold.journal.backup import back_up  # noqa: PLC0415
    from tenfold.report.figures import file_bytes  # noqa: PLC0415

    with _opened(home, journal) as store:
        back_up(store, file, force=force)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size})
    else:
        show(f"journal copied to `{file}` and verified, {file_bytes(size)}")


@app.command(name="verify")
def verify_command(
    *, home: StateDirOption = None, journal: Journal = "", as_json: Json = False
) -> None:
    """Check that no event is missing or changed, and that all other data matches the events."""
    from tenfold.cli.journal.render import show_verified  # noqa: PLC0415
    from tenfold.journal.integrity.head_file import head_path  # noqa: PLC0415
    from tenfold.journal.verify import verify  # noqa: PLC0415

    with _opened(home, journal) as store:
        result = verify(store, head_path(store, find_state_dir(home).absolute()))
    print_json(result) if as_json else show_verified(result)
    if not result.is_valid:
        raise Exit(1)


@app.command(name="compact")
def compact_command(
    *,
    keep_days: Annotated[
        float,
        Parameter(help="Days of events to keep in the journal (default: 30)"),
    ] = 30,
    home: StateDirOption = None,
    journal: Journal = "",
    as_json: Json = False,
) -> None:
    """Move older events into bundles next to the journal.

    Events of unfinished jobs are kept. `tenfold up` does this automatically. If no control plane
    is running, this command also shrinks the journal file.
    """
    from msgspec.structs import asdict  # noqa: PLC0415

    from tenfold.cli.journal.render import show_moved  # noqa: PLC0415
    from tenfold.clock.wall import now_ms  # noqa: PLC0415
    from tenfold.journal.compaction import DAY_MS, compact_once  # noqa: PLC0415
    from tenfold.journal.retention import Export  # noqa: PLC0415

    if keep_days < 0:
        raise InputError(
            "wrong-value",
            f"`--keep-days` must be at least 0, got {keep_days:g}",
            "use 0 to move all events that can be moved",
            field="--keep-days",
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
    """Return free pages of the file to the disk; None while a control plane runs."""
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
            f"no journal at `{where}`",
            f"set the state directory with --state-dir or {STATE_DIR}, or the URL with --journal",
            file=where,
        )
    if "://" not in where and not Path(where).stat().st_size:
        raise InputError(
            "journal-emptied",
            f"the journal `{where}` is empty: it has 0 bytes",
            "restore a backup",
            file=where,
        )
    store = open_store(where)
    try:
        yield store
    finally:
        store.close()
