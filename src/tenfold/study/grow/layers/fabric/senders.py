"""Who sends between nodes: gangs of the history by size, with what their profiles send.

Without a profile that sends anything the model that the fleet expects stands in, laid out as
the planner would; that is an assumption. Gangs are packed: one that fits under a switch
crosses nothing above it. What a policy that scatters gangs adds to that is for runs to tell.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from tenfold.model.fleet.spec import Fabric
from tenfold.physics.growth.breaking import ASSUMED, STATED, Evidence
from tenfold.study.estimate.fill import fill
from tenfold.study.grow.history import History, JobKind, history_of, usual_size
from tenfold.study.grow.layers.fabric.leaves import line_bytes_per_s
from tenfold.study.grow.state import State
from tenfold.study.plan.traffic import crossing_parts

ASSUMES = "the fabric is the usual one, or jobs are those of a mix or of the model expected"
NO_SENDERS = (
    "`network_gbps_per_gpu` and `network_share` in profiles of jobs, or `model` under `[expects]`"
)


class Gang(Struct, frozen=True, kw_only=True):
    """Gangs of one size that send alike."""

    gpus: float
    running: float
    """GPUs of such gangs that run, on average."""
    bytes_per_s_per_gpu: float
    """What each sends while it communicates; 0 where it does not."""
    share: float
    """Part of a step that is communication between nodes."""


class Senders(Struct, frozen=True, kw_only=True):
    """The gangs on one fabric, those that send nothing among them."""

    gangs: tuple[Gang, ...]
    load: float
    """GPUs in use over those there are."""
    evidence: Evidence

    @property
    def running(self) -> float:
        """GPUs that run, on average."""
        return sum(gang.running for gang in self.gangs)


class CrossedFabric(NamedTuple):
    """A fabric with more than one leaf, and who sends over it; None where nobody says."""

    place: int
    fabric: Fabric
    line_bytes_per_s: float
    senders: Senders | None


def crossed_fabrics(state: State) -> list[CrossedFabric]:
    """Return the fabrics that traffic between GPUs may cross."""
    history = state.once(history_of)
    found: list[CrossedFabric] = []
    for place, fabric in enumerate(state.spec.fabrics):
        line = line_bytes_per_s(state, fabric)
        if line and state.layout.fabrics[place].leaves > 1:
            found.append(CrossedFabric(place, fabric, line, senders_on(state, fabric, history)))
    return found


def senders_on(state: State, fabric: Fabric, history: History | None) -> Senders | None:
    """Return who sends over a fabric, or None where nobody says."""
    recorded = None if history is None else _recorded(state, fabric, history)
    return recorded or _expected(state, fabric)


def _recorded(state: State, fabric: Fabric, history: History) -> Senders | None:
    """Return the gangs of the history that have a profile and may run on this fabric."""
    inputs = state.inputs
    parts = [pool.accelerator for pool in state.spec.pools if pool.fabric == fabric.id]
    gangs = [
        _gang(state, kind, running)
        for kind, running in history.running.items()
        if kind.profile in inputs.profiles and _may_run(kind, parts)
    ]
    if not any(gang.bytes_per_s_per_gpu * gang.share for gang in gangs):
        return None
    evidence = ASSUMED if inputs.mix else STATED
    return Senders(gangs=tuple(gangs), load=history.load, evidence=evidence)


def _gang(state: State, kind: JobKind, running: float) -> Gang:
    traffic = state.inputs.profiles[kind.profile].traffic
    return Gang(
        gpus=kind.gpus,
        running=running,
        bytes_per_s_per_gpu=traffic.network_bytes_per_s_per_gpu,
        share=traffic.network_share,
    )


def _may_run(kind: JobKind, parts: Sequence[str | None]) -> bool:
    return not kind.accelerators or any(part in kind.accelerators for part in parts)


def _expected(state: State, fabric: Fabric) -> Senders | None:
    """Return the model expected: all GPUs run it, in jobs of the size that most time goes to."""
    design = state.expected.design
    if design is None or design.curve is None or not design.curve.points:
        return None
    if design.fabric is None or design.fabric.id != fabric.id:
        return None
    gpus = usual_size(state, design)
    point = min(design.curve.points, key=lambda one: abs(one.gpus - gpus))
    filled = fill(point.plan, design.fleet.catalogue)
    across_s = sum(point.breakdown_s[name] for name in crossing_parts(filled))
    gang = Gang(
        gpus=gpus,
        running=float(design.gpus_today),
        # The planner times collectives at this part of the line rate.
        bytes_per_s_per_gpu=design.target.nic_bytes_per_s * float(filled.entry.start.profile.nic),
        share=across_s / point.step_s,
    )
    return Senders(gangs=(gang,), load=1.0, evidence=ASSUMED)


def stall_weight(share: float, limit: float) -> float:
    """Return 1 over how many times its capacity may be wanted before steps stall too long.

    A step of which the part `s` communicates grows by `s` times what is wanted too much, and
    no more than `limit` of it may be that growth.
    """
    if share <= 0.0 or limit >= 1.0:
        return 0.0
    return 1.0 / (1.0 + limit / (1.0 - limit) / share)
