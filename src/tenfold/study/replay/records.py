"""Open a recorded run: a bundle, a state directory, or a journal.

A journal is opened read-only; a control plane may keep writing to it.
"""

from contextlib import closing
from pathlib import Path

from tenfold import __version__
from tenfold.engine.decision_log import Cycle
from tenfold.files.records.replay_bundle import SUFFIXES, Bundle, open_new_bundle, read_bundle
from tenfold.model.errors import InputError

JOURNAL = "journal.db"
"""The journal's file in a state folder."""


def open_record(named: str) -> tuple[Bundle, tuple[str, ...]]:
    """Return the recorded run of a bundle or journal, and notes for the user."""
    if "://" in named:
        return _journal(named)
    path = Path(named).expanduser()
    if path.name.lower().endswith(SUFFIXES):
        return read_bundle(path), ()
    file = path / JOURNAL if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            "no-journal",
            f"no journal at `{file}`",
            "pass a bundle (.jsonl, .jsonl.gz), state directory, journal file or database URL; "
            "`tenfold up` creates a journal",
            file=str(file),
        )
    return _journal(str(file))


def _journal(where: str) -> tuple[Bundle, tuple[str, ...]]:
    # Bundles need no database, which is slow to import.
    from tenfold.journal.record import record_of  # noqa: PLC0415
    from tenfold.journal.store import open_store  # noqa: PLC0415

    with closing(open_store(where, upgrades=False)) as store:
        found = record_of(store, __version__)
    return found.bundle, found.notes


def write_record(bundle: Bundle, path: Path, *, force: bool = False) -> None:
    """Write a record as a bundle, readable only by its owner.

    It contains the commands and environment variables of jobs, like the journal.
    """
    with open_new_bundle(path, bundle.header, force=force, private=True) as writer:
        for line in bundle.lines:
            if isinstance(line, Cycle):
                writer.note(line)
            else:
                writer.append([line])
        writer.end(bundle.end.fleet)


def keep_record(bundle: Bundle, where: str, now_ms: int) -> int:
    """Write a record to a new journal and return the number of events."""
    from tenfold.journal.append import open_journal  # noqa: PLC0415
    from tenfold.journal.bundles import import_bundle  # noqa: PLC0415
    from tenfold.journal.store import open_store  # noqa: PLC0415

    with closing(open_store(where)) as store:
        writer = open_journal(store, "replay", now_ms)
        import_bundle(writer, bundle)
        return writer.seq
