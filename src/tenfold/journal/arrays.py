"""Job arrays in the read tables: members are found by their ids, `base[0]`, `base[1]`.

They are selected by a range of ids, which uses the primary key on SQLite. Finished members may have
been exported before the others, so no single member represents the array.
"""

from sqlalchemy import ColumnElement, Connection, and_, func, select

from tenfold.journal.read_tables import job_row
from tenfold.journal.rows import ArraySummary, JobRow
from tenfold.journal.store import Store
from tenfold.journal.tables import JOBS
from tenfold.model.ids import JobId
from tenfold.model.job.job import ENDED, JOB_STATES, JobState

FAILED_SHOWN_MOST = 10
"""Failed members listed in a summary."""


def array(store: Store, base: str) -> ArraySummary | None:
    """Return an array by the id that its members share, or None if there is none."""
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
    """Return the members of an array in order; with `live`, only unfinished ones."""
    with store.reading() as connection:
        query = select(JOBS).where(members_of(connection, base)).order_by(JOBS.c.number)
        if live:
            query = query.where(JOBS.c.state.not_in(ENDED))
        return [job_row(row) for row in connection.execute(query).mappings()]


def members_of(connection: Connection, base: str) -> ColumnElement[bool]:
    """Return the SQL condition for members of an array."""
    # Other collations ignore brackets; "C" compares bytes.
    column = JOBS.c.id.collate("C") if connection.dialect.name == "postgresql" else JOBS.c.id
    return and_(column >= f"{base}[", column < f"{base}\\")
