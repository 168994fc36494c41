"""Import a bundle: a whole run into a new journal."""

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
"""Events per commit."""


def import_bundle(writer: JournalWriter, bundle: Bundle) -> None:
    """Write the events and cycles of a bundle to an empty journal."""
    if writer.seq:
        raise InputError(
            "journal-not-empty",
            f"the journal already has {writer.seq:,} events",
            "import the bundle into a new journal",
            file=bundle.file,
        )
    if bundle.base() is not None:
        raise InputError(
            "bundle-begins-late",
            f"`{bundle.file}` continues an earlier bundle, so it cannot be imported alone",
            "import a bundle that begins with the first event",
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
    """Record which policy decided when; earlier writers get epochs below this one's."""
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
