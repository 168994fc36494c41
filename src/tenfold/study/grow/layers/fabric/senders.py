"""Traffic between nodes: gangs of the history by size, with the traffic of their profiles.

Without profiles that send anything, the expected model is used, laid out by the planner; that is
an assumption. Gangs are packed: one that fits under a switch crosses nothing above it. Simulation
shows what a policy that scatters gangs adds.
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

ASSUMES = "a typical fabric, and jobs from a mix or for the expected model"
NO_SENDERS = (
    "`network_gbps_per_gpu` and `network_share` in `--profiles`, or `model` under `[expects]`"
)


class Gang(Struct, frozen=True, kw_only=True):
    """Gangs of one size with the same traffic."""

    gpus: float
    running: float
    """GPUs of such gangs running, on average."""
    bytes_per_s_per_gpu: float
    """What each GPU sends while it communicates; 0 if it does not."""
    share: float
    """Share of a step spent in communication between nodes."""


class Senders(Struct, frozen=True, kw_only=True):
    """The gangs on one fabric, including those without traffic."""

    gangs: tuple[Gang, ...]
    load: float
    """GPUs in use over GPUs available."""
    evidence: Evidence

    @property
    def running(self) -> float:
        """GPUs running, on average."""
        return sum(gang.running for gang in self.gangs)


class CrossedFabric(NamedTuple):
    """A fabric with more than one leaf, and its traffic; None if unknown."""

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
    """Return the traffic on a fabric, or None if unknown."""
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
    """Return the expected model on all GPUs, in jobs of the size that takes most GPU time."""
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
        # The planner times collectives at this share of the line rate.
        bytes_per_s_per_gpu=design.target.nic_bytes_per_s * float(filled.entry.start.profile.nic),
        share=across_s / point.step_s,
    )
    return Senders(gangs=(gang,), load=1.0, evidence=ASSUMED)


def stall_weight(share: float, limit: float) -> float:
    """Return 1 over the overload at which steps stall for longer than `limit` of their time.

    A step with a share `s` of communication gets longer by `s` times the excess demand, and that
    may be at most `limit` of it.
    """
    if share <= 0.0 or limit >= 1.0:
        return 0.0
    return 1.0 / (1.0 + limit / (1.0 - limit) / share)
