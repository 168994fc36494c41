"""What happened to one job, from the journal: each event with its reason.

Events are applied again from the job's submission to its last change, on the fleet as it was
then. This reads what lies between, so it is left out for jobs with too much of it.
"""

from tenfold.engine.explain import Stage, explain
from tenfold.journal.read import lines_between
from tenfold.journal.record import fleet_after
from tenfold.journal.rows import JobRow
from tenfold.journal.store import Store
from tenfold.model.api import jobs
from tenfold.model.errors import InputError
from tenfold.report.reasons.registry import shown_code
from tenfold.report.reasons.render import Reader, render
from tenfold.server.schemas import iso

EVENTS_MOST = 20_000
"""Journal events that are applied again for one answer."""


def history_of(store: Store, row: JobRow, reader: Reader) -> tuple[jobs.HistoryEvent, ...] | None:
    """Return what happened to a job, in order; None if that is too long or no longer kept."""
    if row.changed_seq - row.seq > EVENTS_MOST:
        return None
    try:
        base = fleet_after(store, row.seq - 1)
        if base.version != row.seq - 1:
            return None
        story = explain(lines_between(store, row.seq, row.changed_seq), row.id, base=base)
    except InputError:
        # The events from before the oldest snapshot were exported.
        return None
    return None if story is None else tuple(_event(each, reader, row.team) for each in story.stages)


def _event(stage: Stage, reader: Reader, team: str) -> jobs.HistoryEvent:
    sentence = render(stage.why, reader, team)
    return jobs.HistoryEvent(
        at=iso(stage.at_ms) or "",
        event=stage.code,
        reason=jobs.Reason(code=shown_code(stage.why.code), sentence=sentence),
        nodes=stage.nodes,
    )
