"""From a bundle back: a whole run into a new journal."""

import msgspec
from msgspec.structs import replace
from sqlalchemy import insert

from tenfold.engine.decision_log import Cycle
from tenfold.files.records.replay_bundle import Bundle
from tenfold.journal.append import JournalWriter
from tenfold.journal.tables import POLICIES
from tenfold.model.errors import InputError
from tenfold.model.events import Event

BATCH = 1_000
"""Events in one commit."""


def import_bundle(writer: JournalWriter, bundle: Bundle) -> None:
    """Write what a bundle tells into a journal that is still empty."""
    if writer.seq:
        raise InputError(
            "journal-not-empty",
            f"the journal holds {writer.seq:,} events already",
            "take the bundle into a new journal",
            file=bundle.file,
        )
    if bundle.base() is not None:
        raise InputError(
            "bundle-begins-late",
            f"`{bundle.file}` goes on where another record ends, and cannot stand alone",
            "take in a bundle that tells of everything from the first event",
            file=bundle.file,
        )
    _keep_policies(writer, bundle)
    events: list[Event] = []
    for line in bundle.lines:
        if isinstance(line, Cycle):
            writer.note(replace(line, actions=()), writer.seq + len(events))
        else:
            events.append(line)
            if len(events) == BATCH:
                writer.append(events)
                events = []
    writer.append(events)
    writer.flush()


def _keep_policies(writer: JournalWriter, bundle: Bundle) -> None:
    """Note who decided by what; writers of before count down from this one's epoch."""
    stretches = bundle.stretches
    rows = [
        {
            "epoch": place - len(stretches),
            "first_seq": each.first_event,
            "first_cycle": each.first_cycle,
            "body": msgspec.json.encode(each.policy).decode(),
        }
        for place, each in enumerate(stretches)
    ]
    with writer.writing() as connection:
        connection.execute(insert(POLICIES), rows)
