"""Published series that span 8x GPUs: what the law of step efficiency says of the top.

A series is given to `grow` as a user would give it: runs of the stack at an eighth of the
largest size or less with their steps, and the layout at the top without one. Its source is
left out of the facts. The law never counts on a gain, so where more GPUs made each of them
faster it says that nothing is lost, as does who says that nothing changes; the curve that it
is made of is printed beside it, and not judged.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from benchmarks.planner.training_judge import Judge, observed
from benchmarks.planner.training_rows import Rows, missing, pick, read_rows
from benchmarks.planner.training_scaling import KNOWN_MAX, SPAN, _known, _series
from benchmarks.verdict import Verdict
from tenfold.compose.fleet import OpenFleet
from tenfold.facts.loader import load_catalogue
from tenfold.model.estimate import TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import FleetSpec
from tenfold.physics.layout import lay_out
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.compute.step_efficiency import StepEfficiency
from tenfold.study.grow.observed import ObservedInputs, with_observed
from tenfold.study.grow.state import state_of


@dataclass(frozen=True, slots=True)
class Loss:
    """Loss of throughput a GPU at the top of one series, as the law says and as it was."""

    label: str
    rows: int
    gpus_from: int
    gpus_to: int
    said: float
    curve: float
    seen: float

    @property
    def points(self) -> float:
        """How far the law was off."""
        return 100 * abs(self.said - self.seen)

    @property
    def points_same(self) -> float:
        """How far off it is to say that a GPU does as much as before."""
        return 100 * abs(self.seen)


class Kept(NamedTuple):
    """Speed of a GPU at the top over that today: as the law has it, and with gains."""

    by_law: float
    by_curve: float


def run(thresholds: dict[str, float]) -> list[Verdict]:
    """Print every series and return the verdicts; none where the rows are not there."""
    absent = missing()
    if absent:
        print(f"not run: {absent}")
        return []
    catalogue = load_catalogue()
    rows, _ = read_rows(catalogue)
    rank = Judge(rows, catalogue)
    losses = [loss for index in _series(rows) for loss in _losses(rank, pick(rows, index))]
    _print(losses)
    points = float(np.median([one.points for one in losses]))
    same = float(np.median([one.points_same for one in losses]))
    print(f"{len(losses)} series: median error {points:.1f} points; unchanged {same:.1f}")
    curve = float(np.median([100 * abs(one.curve - one.seen) for one in losses]))
    print(f"with gains counted, as in the curve: {curve:.1f} points")
    missed = [one for one in losses if one.points > thresholds["loss_points"]]
    print(f"further off than {thresholds['loss_points']:g} points: {len(missed)}")
    for one in missed:
        print(f"  {' '.join(one.label.split())}: said {one.said:+.1%}, seen {one.seen:+.1%}")
    return [
        Verdict("scaling loss by grow: median error", points, thresholds["loss_points"], " points"),
        Verdict(
            "scaling loss by grow: error over that of `it stays the same`",
            points / same,
            thresholds["over_same"],
        ),
    ]


def _losses(rank: Judge, own: Rows) -> list[Loss]:
    """Return the loss at the top of one series, once for each run there."""
    gpus = np.asarray(own.runs.plans.gpus)
    small = gpus <= gpus.max() / SPAN
    known = _known(rank.rows, own, float(gpus.max()) / SPAN)
    known = pick(own, small) if len(known) > KNOWN_MAX else known
    tokens = np.asarray(own.runs.plans.global_batch) * np.asarray(own.runs.plans.seq)
    rate = tokens / gpus / own.step_s
    base = int(np.flatnonzero(small)[np.argmax(gpus[small])])
    timed = _own_first(observed(pick(own, small)), observed(known))
    catalogue = rank.without(str(own.source[0]))
    return [
        Loss(
            label=f"{own.runs.stack[0]:16} {own.runs.part[0]:13} {own.model[0]}",
            rows=len(timed),
            gpus_from=int(gpus[base]),
            gpus_to=int(gpus[top]),
            said=1 - kept.by_law,
            curve=1 - kept.by_curve,
            seen=float(1 - rate[top] / rate[base]),
        )
        for top in np.flatnonzero(gpus == gpus.max())
        for kept in [kept_at(timed, own.rows[top], catalogue)]
    ]


def _own_first(own: list[TrainRow], known: list[TrainRow]) -> list[TrainRow]:
    ids = {row.id for row in own}
    return [*own, *(row for row in known if row.id not in ids)]


def kept_at(timed: list[TrainRow], top: TrainRow, catalogue: Catalogue) -> Kept:
    """Return what a GPU keeps of its speed at the top, by the law that `grow` judges with."""
    spec = FleetSpec(name="published", sites=(), pools=())
    fleet = OpenFleet(spec=spec, layout=lay_out(spec), catalogue=catalogue)
    # A series is of one model: widths that only some of its rows state hold for all.
    planned = replace(top, step_s=None, model=timed[0].model)
    inputs = with_observed(GrowInputs(fleet=fleet), [*timed, planned])
    assert isinstance(inputs, ObservedInputs), "there are runs"
    state, series = state_of(inputs), inputs.series[0]
    constraint = _first(computed_constraints(state, "job-size"))
    least = state.grow.limits.step_efficiency_least
    return Kept(
        least / constraint.utilisation(top.gpus / series.gpus), dict(series.scaling)[top.gpus]
    )


def _first(constraints: list[Constraint]) -> Constraint:
    """Return the law of the series whose rows came first."""
    return next(constraint for constraint in constraints if constraint.layer == StepEfficiency.name)


def _print(losses: list[Loss]) -> None:
    print("Loss a GPU at the top, by `grow` from runs at 1/8 of that or less, source left out")
    head = f"{'stack':16} {'accelerator':13} {'model':9} {'rows':>4} {'gpus':>14}"
    print(f"{head} | {'said':>6} {'seen':>6} | {'off':>5} {'unchanged off':>13} | {'curve':>6}")
    for one in sorted(losses, key=lambda loss: loss.points):
        label = f"{one.label:41} {one.rows:3} {one.gpus_from:6} -> {one.gpus_to:5}"
        print(
            f"{label} | {one.said:+6.1%} {one.seen:+6.1%} | {one.points:5.1f} "
            f"{one.points_same:13.1f} | {one.curve:+6.1%}"
        )
