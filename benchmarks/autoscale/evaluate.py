"""One simulation of the benchmark: a policy with a knob on a trace, both parts judged.

Results are kept in the file that `TENFOLD_AUTOSCALE_RESULTS` names, if it is set, by the code
that made them: a run that was broken off goes on where it was.
"""

import json
import os
from bisect import bisect_left
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

import tenfold
from benchmarks.autoscale.bounds import following, planned
from benchmarks.autoscale.traces import Case
from tenfold.decide.autoscale.autoscale import autoscale
from tenfold.decide.autoscale.baselines.dynamo import Dynamo
from tenfold.decide.autoscale.baselines.hpa import Hpa
from tenfold.decide.autoscale.baselines.kpa import Kpa
from tenfold.decide.autoscale.baselines.ray_serve import RayServe
from tenfold.decide.autoscale.baselines.skyserve import SkyServe
from tenfold.decide.autoscale.baselines.static import Static
from tenfold.model.service.autoscale import DECIDE_MS, AutoscalePolicy, ScalingDecision
from tenfold.model.service.load import ServiceLoad
from tenfold.model.units import Millis
from tenfold.sim.service.run import figures
from tenfold.study.autoscale.policies import Decide, TickedAutoscaler, remembering, ticked
from tenfold.study.autoscale.run import AutoscaleRequest, run_with

UTILISATIONS = (1.0, 0.8, 0.64, 0.5, 0.4, 0.32, 0.25, 0.2, 0.15, 0.1)
CAUTIONS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0)
WANTED = 0.99
GRIDS: dict[str, tuple[float, ...]] = {
    "tenfold": CAUTIONS,
    **dict.fromkeys(("kpa", "hpa", "ray-serve", "skyserve", "dynamo"), UTILISATIONS),
}
"""Knobs of each policy, the cheapest first; equally many for all."""
HINDSIGHT = ("oracle", "hindsight")
"""Bounds, judged on the second part alone; `hindsight` is a fixed number."""
FIXED = ("static", "hindsight")
JITTER = (0.8, 0.9, 1.0, 1.1, 1.2)
"""Cold starts vary by this around their mean."""


class Cell(Struct, frozen=True):
    """A trace with a cold start and a seed."""

    case: Case
    cold_s: int
    seed: int = 0

    @property
    def cold_starts_ms(self) -> list[int]:
        """Return the cold starts that are drawn from."""
        return [round(self.cold_s * one * 1_000) for one in JITTER]


class Outcome(Struct, frozen=True):
    """Attainment and replica-hours, on the first part and on the second.

    A simulation ends as soon as a part has missed too much; what it did not reach is 0.
    """

    tuned: float = 0.0
    tuned_hours: float = 0.0
    scored: float = 0.0
    scored_hours: float = 0.0


class TooManyMissed(Exception):
    """A part of the trace has missed more requests than the objective allows."""


def evaluate(cell: Cell, name: str, knob: float) -> Outcome:
    """Return what a policy with a knob does, simulated or from the kept results."""
    key = f"{cell.case.name}|{cell.cold_s}|{cell.seed}|{name}|{knob:g}|{_code(name)}"
    kept = _kept()
    if key not in kept:
        kept[key] = _simulate(cell, name, knob)
        path = os.environ.get("TENFOLD_AUTOSCALE_RESULTS")
        if path:
            with Path(path).open("a") as file:
                file.write(json.dumps([key, to_builtins(kept[key])]) + "\n")
    return kept[key]


def _simulate(cell: Cell, name: str, knob: float) -> Outcome:
    case = cell.case
    request = AutoscaleRequest(
        trace=case.trace, service=case.service, cold_starts_ms=cell.cold_starts_ms, seed=cell.seed
    )
    policy = case.service.policy(cell.cold_starts_ms)
    warm = int(knob) if name in FIXED else None
    budget = _Budget(case, only_second=name in HINDSIGHT)
    made = _autoscaler(cell, name, knob, policy)
    watched = TickedAutoscaler(budget.watching(made.decide), made.tick_ms)
    try:
        run = run_with(request, watched, warm=warm)
    except TooManyMissed:
        return Outcome(tuned=WANTED if budget.is_second else 0.0)
    first, second = figures(run, 0, case.split_ms), figures(run, case.split_ms)
    return Outcome(first.attainment, first.replica_hours, second.attainment, second.replica_hours)


class _Budget:
    """Counts the misses of each part while a policy runs, and ends a hopeless run."""

    def __init__(self, case: Case, *, only_second: bool) -> None:
        times = case.trace.arrived_ms
        first = bisect_left(times, case.split_ms)
        self._split_ms = case.split_ms
        # A little more than allowed: a miss may be known in the part after its own.
        self._most = [many * (1 - WANTED) * 1.05 + 20 for many in (first, len(times) - first)]
        if only_second:
            self._most[0] = len(times)
        self._seen, self._missed = 0, [0, 0]
        self.is_second = False

    def watching(self, decide: Decide) -> Decide:
        """Return the same decisions, with an end to those that missed too much."""

        def watched(load: ServiceLoad, now_ms: Millis) -> ScalingDecision:
            history = load.history
            self.is_second = now_ms > self._split_ms
            for at in range(self._seen, len(history)):
                self._missed[at * load.bucket_ms >= self._split_ms] += history[at].missed
            self._seen = len(history)
            part = int(self.is_second)
            if self._missed[part] > self._most[part]:
                raise TooManyMissed
            return decide(load, now_ms)

        return watched


def _autoscaler(cell: Cell, name: str, knob: float, policy: AutoscalePolicy) -> TickedAutoscaler:
    if name == "tenfold":
        cautious = replace(policy, caution=knob)
        return TickedAutoscaler(remembering(autoscale, cautious), DECIDE_MS)
    if name == "oracle":
        lead_ms = max(cell.cold_starts_ms)
        return following(planned(cell.case, knob, cell.cold_s * 1_000), lead_ms)
    if name in FIXED:
        return ticked(Static(replicas=int(knob)), policy)
    made: dict[str, Callable[[], TickedAutoscaler]] = {
        "kpa": lambda: ticked(Kpa(utilisation=knob), policy),
        "hpa": lambda: ticked(Hpa(utilisation=knob), policy),
        "ray-serve": lambda: ticked(
            RayServe(target_ongoing=knob * policy.rates.slots, tick_ms=5_000), policy
        ),
        "skyserve": lambda: ticked(SkyServe(utilisation=knob), policy),
        "dynamo": lambda: ticked(Dynamo(utilisation=knob), policy),
    }
    return made[name]()


_RESULTS: dict[str, Outcome] = {}


def _kept() -> dict[str, Outcome]:
    path = os.environ.get("TENFOLD_AUTOSCALE_RESULTS")
    if not _RESULTS and path and Path(path).exists():
        for line in Path(path).read_text().splitlines():
            key, value = json.loads(line)
            _RESULTS[key] = convert(value, Outcome)
    return _RESULTS


def _code(name: str) -> str:
    """Return a digest of the code that a result depends on."""
    source = Path(tenfold.__file__).parent
    files = [*(source / "sim" / "service").glob("*.py"), Path(__file__).with_name("traces.py")]
    if name == "tenfold":
        files += (source / "decide" / "autoscale").glob("*.py")
    elif name == "oracle":
        files.append(Path(__file__).with_name("bounds.py"))
    else:
        files += (source / "decide" / "autoscale" / "baselines").glob("*.py")
    if name not in _DIGESTS:
        text = b"".join(file.read_bytes() for file in sorted(files))
        _DIGESTS[name] = blake2b(text, digest_size=6).hexdigest()
    return _DIGESTS[name]


_DIGESTS: dict[str, str] = {}
