"""Histories for journals: whole simulated runs, as the loop would write them."""

from collections.abc import Sequence
from random import Random

from sqlalchemy import select

from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider, Journal, Witness, run
from tenfold.engine.recording import Recording
from tenfold.fleet.fleet import Fleet
from tenfold.journal.integrity.table_sum import READ_TABLES
from tenfold.journal.store import Store
from tenfold.model.events import (
    Event,
    JobSubmitted,
    ModelAliasMoved,
    ModelRegistered,
    ModelStaged,
    ModelVersionRemoved,
    NodeJoined,
)
from tenfold.model.ids import TeamId
from tenfold.model.job.job import Shape
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.registry import Artefact, ModelVersion
from tenfold.model.units import Millis
from tenfold.testing.builders import job, nodes
from tests.rigs.soak import simulated
from tests.rigs.worlds import SmallWorld, drawn_world


def submitted(number: int, team: str = "red", gpus: int = 16) -> JobSubmitted:
    """A job that says what it runs."""
    return JobSubmitted(
        Millis(number),
        job(number, gpus, team=team),
        RunSpec(name=f"train-{number}", command=("true",)),
    )


def array_of(members: int, number: int = 1, command: Sequence[str] = ("true",)) -> list[Event]:
    """The submissions of an array that is large enough to share its text."""
    submission = Submission(
        team=TeamId("red"),
        shape=Shape(key="16", gpus=16),
        run_spec=RunSpec(name="train", command=(*command, "--data", "x" * 300)),
        array=members,
    )
    now_ms = Millis(number)
    return [
        JobSubmitted(now_ms, one.job, one.run_spec) for one in admitted(submission, number, now_ms)
    ]


def models_registered(at_ms: int = 0) -> list[Event]:
    """A model with two versions, an alias that moved, a stage, and a removed version."""
    now_ms, team = Millis(at_ms), TeamId("red")
    artefact = Artefact(location="/models/chat", kind="folder", digest="0" * 64, files=3)
    versions = [
        ModelVersion(team=team, model="chat", number=number, artefact=artefact, by="ann")
        for number in (1, 2)
    ]
    return [
        *(ModelRegistered(now_ms, version) for version in versions),
        ModelAliasMoved(now_ms, team, "chat", "prod", 1, 0, "ann"),
        ModelAliasMoved(now_ms, team, "chat", "prod", 2, 1, "bob"),
        ModelStaged(now_ms, team, "chat", 2, "production", "development", "bob"),
        ModelVersionRemoved(now_ms, team, "chat", 1, "bob"),
    ]


JOINED: list[Event] = [NodeJoined(Millis(0), node) for node in nodes(2)]
"""Two nodes, up and empty."""


class Batches:
    """A journal that remembers what came together."""

    def __init__(self) -> None:
        self.batches: list[list[Event]] = []

    def append(self, events: Sequence[Event]) -> None:
        if events:
            self.batches.append(list(events))


def policy_for(world: SmallWorld, name: PolicyName) -> Policy:
    return Policy(name=name, placement=world.placement, slurm=world.slurm, govern=world.govern)


def decider_for(world: SmallWorld, name: PolicyName) -> Decider:
    return placing_decider(policy_for(world, name), world.restart_cost_ms)


def played(
    world: SmallWorld, name: PolicyName, journal: Journal, *witnesses: Witness
) -> tuple[Fleet, Recording]:
    """Run a world to its end with a journal; return the fleet and a recording beside it."""
    fleet, recording = Fleet(), Recording()
    both = Both(journal, recording)
    run(
        simulated(world),
        fleet,
        [decider_for(world, name)],
        journal=both,
        witnesses=[recording, *witnesses],
    )
    return fleet, recording


class Both:
    """Two journals that are told the same."""

    def __init__(self, first: Journal, second: Journal) -> None:
        self._journals = (first, second)

    def append(self, events: Sequence[Event]) -> None:
        for journal in self._journals:
            journal.append(events)


def batches_of(seed: int, *, jobs: int = 12, governed: bool = True) -> list[list[Event]]:
    """Return the facts of a small run, as they came together."""
    world = drawn_world(Random(seed), jobs=(jobs, jobs), faults=(1, 3), governed=governed)
    kept = Batches()
    played(world, "governed" if governed else "tenfold", kept)
    return kept.batches


def read_tables(store: Store) -> dict[str, list[tuple[object, ...]]]:
    """Return all that the read tables hold, in a fixed order."""
    with store.reading() as connection:
        return {
            table.name: [
                tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key))
            ]
            for table in READ_TABLES
            if table.name != "submit_keys"
        }


def states_told(fleet: Fleet) -> dict[str, str]:
    """Return in which state each job of a fleet stands that is not over."""
    told: dict[str, str] = dict.fromkeys(fleet.pending, "pending")
    told |= dict.fromkeys(fleet.orders, "starting")
    told |= {
        job_id: "stopping" if run.stopping else "running" for job_id, run in fleet.running.items()
    }
    return told
