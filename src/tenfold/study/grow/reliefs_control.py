"""What relieves admission: settings of the controller, another controller, or several.

Settings are free. Where a job costs the controller so much time that no setting helps, its
queue is parted among several; what that takes nobody states.
"""

from collections.abc import Callable, Iterator
from math import ceil
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.growth import Controller
from tenfold.model.slurm_policy import SlurmPolicy
from tenfold.physics.growth.admission import starts_per_s
from tenfold.physics.growth.law import Law
from tenfold.study.grow.laws_admission import controller_of
from tenfold.study.grow.relief import NEARLY, Relief, taken
from tenfold.study.grow.state import State, widen


class _Set(NamedTuple):
    """A controller and a slurm.conf set otherwise, in words."""

    controller: Controller
    slurm: SlurmPolicy | None
    sentence: str


def _admission(law: Law, state: State, dose: float) -> list[Relief]:
    controller = controller_of(law, state)
    slurm = state.policy.slurm if controller.kind == "slurm" else None
    rate = starts_per_s(controller, slurm).per_s
    assert rate is not None, "a law of admission has a rate"
    needed = rate * dose * NEARLY
    made = [
        _setting(controller, one)
        for one in _settings(controller, slurm, needed)
        if (starts_per_s(one.controller, one.slurm).per_s or 0.0) >= needed
    ]
    return [*made, *_own_loop(law, state, controller, needed), _parted(law, state, dose)]


def _settings(controller: Controller, slurm: SlurmPolicy | None, needed: float) -> Iterator[_Set]:
    """Yield settings that may reach a rate: more heads in a cycle, more starts in a pass."""
    if slurm is not None and slurm.jobs_started_max:
        yield _more_starts(controller, slurm, needed)
    if controller.cycles_per_min is not None:
        share = 1.0 if controller.admitted_share is None else controller.admitted_share
        heads = ceil(needed * 60 / controller.cycles_per_min / share * NEARLY)
        # Kueue takes the head of every queue in a cycle: more heads are more queues.
        what = "queues of one cohort" if controller.kind == "kueue" else "heads of a queue"
        text = f"try {heads:,} {what} in each cycle, {controller.heads_per_cycle:,} today"
        yield _Set(replace(controller, heads_per_cycle=heads), slurm, text)


def _more_starts(controller: Controller, slurm: SlurmPolicy, needed: float) -> _Set:
    """The main pass alone reaches the rate; backfill, where there is one, starts more."""
    period_s = max(1.0, slurm.interval_min_us / 1e6)
    starts = ceil(needed * period_s * NEARLY)
    text = f"`sched_max_job_start={starts}` in slurm.conf, {slurm.jobs_started_max:,} today"
    return _Set(controller, replace(slurm, jobs_started_max=starts), text)


def _setting(old: Controller, new: _Set) -> Relief:
    def apply(now: State) -> State:
        controllers = tuple(new.controller if one == old else one for one in now.grow.controllers)
        policy = now.policy
        if new.slurm is not None and policy.slurm is not None:
            starts = new.slurm.jobs_started_max
            policy = replace(policy, slurm=replace(policy.slurm, jobs_started_max=starts))
        grow = replace(now.grow, controllers=controllers)
        return replace(taken(now, "setting"), grow=grow, policy=policy)

    return Relief("setting", new.sentence, 0.0, 0.0, apply)


def _own_loop(law: Law, state: State, old: Controller, needed: float) -> Iterator[Relief]:
    """Tenfold's own loop takes over where the file says what a job costs it, and that is enough."""
    own = [one for one in state.grow.controllers if one.kind == "tenfold"]
    if old.kind == "tenfold" or not any((starts_per_s(one).per_s or 0) >= needed for one in own):
        return

    def apply(now: State) -> State:
        left = tuple(one for one in now.grow.controllers if one != old)
        return replace(taken(now, "own-loop"), grow=replace(now.grow, controllers=left))

    yield Relief("own-loop", f"let Tenfold admit what {law.resource} admits", 0.0, 0.0, apply)


def _parted(law: Law, state: State, dose: float) -> Relief:
    there = max(1, round(state.widening(law.key)))
    parts = ceil(there * dose * NEARLY)

    def apply(now: State) -> State:
        return widen(taken(now, "parted"), law.key, parts / there)

    text = f"part the jobs of {law.resource} among {parts:,} controllers, {there:,} today"
    return Relief("parted", text, None, None, apply)


CONTROL_RELIEFS: dict[str, Callable[[Law, State, float], list[Relief]]] = {"admission": _admission}
