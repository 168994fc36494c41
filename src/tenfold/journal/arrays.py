"""Arrays in the read tables: the members of one are known by their names, `base[0]`, `base[1]`.

They are asked for as a range of names, which the key of the table answers on SQLite. Members
that are over may have been exported before the others, so none of them stands for the whole.
"""

from sqlalchemy import ColumnElement, Connection, and_, func, select

from tenfold.journal.read_tables import job_row
from tenfold.journal.rows import ArraySummary, JobRow
from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS
from tenfold.model.ids import JobId
from tenfold.model.job.job import ENDED, JOB_STATES, JobState

FAILED_SHOWN_MOST = 10
"""Members that failed and are named in a summary."""


def array(store: Store, base: str) -> ArraySummary | None:
    """Return an array by the name that its members share, or None where there is none."""
    with store.reading() as connection:
        inside = members_of(connection, base)
        query = select(JOBS).where(inside).order_by(JOBS.c.number).limit(1)
        row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        counted = select(JOBS.c.state, func.count()).where(inside).group_by(JOBS.c.state)
        counts: dict[str, int] = {one[0]: one[1] for one in connection.execute(counted)}
        failed = (
            select(JOBS.c.id)
            .where(inside, JOBS.c.state == "failed")
            .order_by(JOBS.c.number)
            .limit(FAILED_SHOWN_MOST)
        )
        names = tuple(JobId(name) for name in connection.execute(failed).scalars())
    states: dict[JobState, int] = {state: counts[state] for state in JOB_STATES if state in counts}
    return ArraySummary(first=job_row(row), states=states, failed=names)


def members(store: Store, base: str, *, live: bool = False) -> list[JobRow]:
    """Return the members of an array in their order; with `live`, those that are not over."""
    with store.reading() as connection:
        query = select(JOBS).where(members_of(connection, base)).order_by(JOBS.c.number)
        if live:
            query = query.where(JOBS.c.state.not_in(ENDED))
        return [job_row(row) for row in connection.execute(query).mappings()]


def members_of(connection: Connection, base: str) -> ColumnElement[bool]:
    """Return the condition that a job is a member of an array."""
    # Other collations pass over brackets; in this one a name is the bytes it is made of.
    column = JOBS.c.id.collate("C") if connection.dialect.name == "postgresql" else JOBS.c.id
    return and_(column >= f"{base}[", column < f"{base}\\")
