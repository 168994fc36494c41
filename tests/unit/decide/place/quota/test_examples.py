"""The worked examples of the page on quota and preemption, run as they stand there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.files.policy.read import read_policy
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import Action, ReserveStart, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobStarted,
    JobStopped,
    JobSubmitted,
)
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import MINUTE, Millis
from tenfold.testing.builders import fleet, nodes
from tests.rigs.governed.laws import Governing

PAGE = Path(__file__).parents[5] / "docs/explanation/quota-and-preemption.md"
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
POLICY = re.compile(r"```toml\n(.*?)```", re.DOTALL)
ROW = re.compile(r"^\| (\d+) min \| (.+?) \| (.+?) \|$", re.MULTILINE)
SUBMITS = re.compile(r"`(\w+)` submits `(\w+)`: (\d+) GPUs?(.*)")


class Example(NamedTuple):
    title: str
    policy: str
    rows: list[tuple[str, str, str]]


def examples() -> Iterator[Example]:
    for title, text in SECTION.findall(PAGE.read_text()):
        if policy := POLICY.search(text):
            yield Example(title, policy[1], ROW.findall(text))


def asked(words: str, now: Millis, number: int) -> Job:
    """Return the job that a row tells of."""
    found = SUBMITS.fullmatch(words)
    assert found is not None, f"not understood: {words}"
    team, name, gpus, more = found.groups()
    limit, priority = re.search(r"up to (\d+) min", more), re.search(r"priority (\d+)", more)
    saves = re.search(r"saves every (\d+) min", more)
    return Job(
        id=JobId(name),
        shape=shape_of(int(gpus)),
        submitted_ms=now,
        seq=number,
        team=TeamId(team),
        priority=int(priority[1]) if priority else 0,
        limit_ms=Millis(int(limit[1]) * MINUTE) if limit else None,
        terms=Terms(
            preemptible="not preemptible" not in more,
            checkpoint_every_ms=Millis(int(saves[1]) * MINUTE) if saves else None,
        ),
    )


class Told:
    """A fleet that lives through the rows of an example."""

    def __init__(self, govern: GovernanceRules) -> None:
        self.fleet: Fleet = fleet(nodes(2))
        self.decider = Governing(GovernedPlacer(govern), govern)
        self.number = 0

    def happens(self, words: str, now: Millis) -> str:
        """Let a row happen, and say what is decided."""
        self.number += 1
        news: list[Event] = []
        if words.endswith("ends"):
            news.append(JobEnded(now, JobId(words.split("`")[1])))
        elif "min_run_min" not in words:
            news.append(JobSubmitted(now, asked(words, now, self.number)))
        self.fleet.apply_all(news)
        said: list[str] = []
        while actions := self.decider.decide(self.fleet, now, None).actions:
            # Room that stops make is kept by a promise too, which is not worth a word.
            makes_room = any(isinstance(action, StopJob) for action in actions)
            kept = [one for one in actions if not (makes_room and isinstance(one, ReserveStart))]
            said += map(in_words, kept)
            for action in actions:
                self.fleet.apply(ActionOrdered(now, action))
                self.fleet.apply_all(outcome(action, now))
        return ", ".join(said) or "nothing"


def outcome(action: Action, now: Millis) -> list[Event]:
    if isinstance(action, StartJob):
        return [JobStarted(now, action.job_id)]
    if isinstance(action, StopJob):
        return [JobStopped(now, action.job_id, action.cause, Millis(0))]
    return []


def in_words(action: Action) -> str:
    if isinstance(action, StartJob):
        return f"`{action.job_id}` starts"
    if isinstance(action, StopJob):
        return f"`{action.job_id}` stops"
    assert isinstance(action, ReserveStart), f"no word for {action}"
    return f"`{action.job_id}` gets a reserved start at {action.start_ms // MINUTE} min"


@pytest.mark.parametrize("example", list(examples()), ids=lambda each: each.title.replace(" ", "-"))
def test_an_example_of_the_page_happens_as_told(example: Example, tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text(example.policy)
    govern = read_policy(path).govern
    assert govern is not None
    if "min_run_min" not in example.policy:
        govern = replace(govern, min_run_ms=Millis(0))
    told = Told(govern)
    assert example.rows
    for at, words, decided in example.rows:
        assert told.happens(words, Millis(int(at) * MINUTE)) == decided, f"at {at} min: {words}"


def test_every_section_with_a_policy_is_an_example():
    titles = [each.title for each in examples()]
    assert len(titles) == 6
    assert all(len(each.rows) >= 5 for each in examples())
