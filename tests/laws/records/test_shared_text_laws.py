"""Whatever is appended is read back, whether or not some of it is stored once."""

from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from tenfold.journal import read
from tenfold.journal.append import open_journal
from tenfold.journal.integrity.chain import check_chain, row_pages
from tenfold.journal.store import open_store
from tenfold.model.actions import RefuseJob
from tenfold.model.events import ActionOrdered, Event, JobRefused, JobSubmitted
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Shape
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission, SubmitKey, admitted
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason, Text
from tenfold.model.units import Millis

AWKWARD = ('"id":"a-1[0]"', '"seq":1', '["TENFOLD_ARRAY_INDEX","0"]', "\n", "\\", '"job_id":', "x")
words = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
    st.integers(200, 900).map(lambda size: "y" * size),
)
lists = st.lists(words, max_size=4).map(tuple)
names = st.sampled_from(("a", "b", '"id":"', "job\n"))


@st.composite
def arrays(draw: st.DrawFn) -> list[Event]:
    """Draw the events of one submission, and refusals of some of its jobs."""
    submission = Submission(
        team=TeamId(draw(names)),
        shape=Shape(key=draw(words), where=PlacementConstraints(needs=draw(lists))),
        run_spec=RunSpec(name=draw(names), command=draw(lists), env=((draw(words), "v"),)),
        terms=draw(st.none() | st.just(Terms(after=(JobId("a-1[0]"),)))),
        array=draw(st.integers(0, 6)),
    )
    now_ms = Millis(draw(st.integers(0, 3)))
    key = draw(st.none() | st.just(SubmitKey(TeamId("t"), "k", "d")))
    jobs = admitted(submission, draw(st.integers(1, 200)), now_ms)
    events: list[Event] = [
        JobSubmitted(now_ms, one.job, one.run_spec, None if place else key)
        for place, one in enumerate(jobs)
    ]
    reasons = (Reason("why", {"text": Text("".join(draw(lists)))}),)
    for one in jobs[: draw(st.integers(0, 6))]:
        events.append(ActionOrdered(now_ms, RefuseJob(one.job.id, reasons)))
        events.append(JobRefused(now_ms, one.job.id, reasons))
    return events


commits = st.lists(arrays(), min_size=1, max_size=3).map(lambda them: [*chain(*them)])
SHARED: list[int] = []
"""Shared texts of all examples: the law must have met some."""


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(commits, min_size=1, max_size=5))
def read_back(batches: list[list[Event]]) -> None:
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "journal.db")
        writer = open_journal(store, "law", 0)
        for batch in batches:
            writer.append(batch)
        events = [event for batch in batches for event in batch]
        assert [event for _, event in read.events_after(store)] == events
        bodies = [row.body for page in row_pages(store, 0) for row in page]
        assert bodies == [msgspec.json.encode(event) for event in events]
        check_chain(store, writer.seq)
        with store.reading() as connection:
            count = "SELECT count(*) FROM shared_texts"
            SHARED.append(connection.execute(text(count)).scalar_one())
        store.close()


def test_what_was_appended_is_read_back():
    SHARED.clear()
    read_back()
    assert sum(SHARED) > 20
