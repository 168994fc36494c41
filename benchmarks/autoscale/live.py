"""The same requests through the live gateway and through `tenfold sim autoscale`.

    .venv/bin/python -m benchmarks.autoscale.live --speed 20

Live, requests go through a gateway to stub replicas, and the controller decides, all 20 times as
fast; the simulator gets the same requests and the same service. The order of the decisions is to be
the same, and the replica-hours within 5%.
"""

import argparse
import sys
from math import exp, pi, sin

import numpy as np
from msgspec import Struct

from tenfold.model.service.autoscale import AutoscalePolicy
from tenfold.model.service.simulated import RequestTrace, SimulatedService
from tenfold.model.service.spec import Readiness, ServiceSpec
from tenfold.model.units import HOUR, MINUTE, SECOND
from tenfold.sim.service.run import figures, replica_ms
from tenfold.study.autoscale.policies import by_name
from tenfold.study.autoscale.run import AutoscaleRequest, run_with
from tests.rigs.live_service import LiveOutcome, LiveService

COLD_START_S = 60.0
WARM = 2
OVER_MAX = 0.05
EDGE_MS = 30 * SECOND
"""Decisions so late are not compared: the live run ends with the last request, and a second of
delay there is 20 s of it."""
SERVICE = SimulatedService(
    slots=4,
    prefill_tokens_per_s=2_000,
    decode_tokens_per_s=4,
    cold_start_s=COLD_START_S,
    replicas_min=WARM,
    replicas_max=12,
    ttft_objective_s=4,
    attainment=0.95,
)
"""Requests of ten seconds: long against the delays of a busy machine, even 20 times as fast."""


class Compared(Struct, frozen=True):
    """Both runs."""

    live: LiveOutcome
    live_hours: float
    sim_hours: float
    sim_targets: tuple[int, ...]
    sim_scaled_ms: tuple[int, ...]
    sim_attainment: float

    @property
    def over(self) -> float:
        """Return live replica-hours over simulated ones, less one."""
        return self.live_hours / self.sim_hours - 1

    @property
    def is_same_order(self) -> bool:
        """Return whether the same numbers of replicas were wanted, one after the other."""
        return tuple(self.live.targets) == self.sim_targets


def requests(minutes: float, seed: int) -> RequestTrace:
    """Return requests at a rate that rises, stays, falls and rises again, as chance has it."""
    draw = np.random.default_rng(seed)
    arrived: list[int] = []
    at_s, end_s = 0.0, minutes * 60
    while True:
        at_s += draw.exponential(1 / _rate(at_s / end_s))
        if at_s >= end_s:
            break
        arrived.append(round((at_s + 20) * SECOND))
    many = len(arrived)
    return RequestTrace(arrived, [100] * many, draw.integers(32, 53, many).tolist())


def _rate(share: float) -> float:
    """Return requests per second at a share of the time."""
    spike = 1.2 * exp(-(((share - 0.72) / 0.06) ** 2))
    return 0.35 + 0.9 * max(0.0, sin(2 * pi * share)) + spike


def compare(trace: RequestTrace, speed: float) -> Compared:
    """Return what became of the requests, live and simulated."""
    request = AutoscaleRequest(
        trace=trace, service=SERVICE, cold_starts_ms=[round(COLD_START_S * SECOND)]
    )
    policy = SERVICE.policy(request.cold_starts_ms)
    run = run_with(request, by_name("tenfold", policy), warm=WARM)
    live = LiveService(_spec(policy), speed=speed, cold_start_s=COLD_START_S, warm=WARM)
    try:
        outcome = live.run(trace)
    finally:
        live.close()
    last_ms = run.end_ms - EDGE_MS
    steps = [one for one in run.steps if one.at_ms <= last_ms]
    decided = [
        one for one in zip(outcome.targets, outcome.scaled_ms, strict=True) if one[1] <= last_ms
    ]
    outcome.targets[:] = [target for target, _ in decided]
    outcome.scaled_ms[:] = [at_ms for _, at_ms in decided]
    return Compared(
        live=outcome,
        live_hours=outcome.replica_ms / HOUR,
        sim_hours=replica_ms(run, 0, run.end_ms) / HOUR,
        sim_targets=tuple(one.decision.target for one in steps),
        sim_scaled_ms=tuple(one.at_ms for one in steps),
        sim_attainment=figures(run).attainment,
    )


def _spec(policy: AutoscalePolicy) -> ServiceSpec:
    return ServiceSpec(
        name="chat",
        team="red",
        command=("serve", "{port}"),
        replicas_min=policy.replicas_min,
        replicas_max=policy.replicas_max,
        slots=policy.rates.slots,
        prefill_tokens_per_s=policy.rates.prefill_tokens_per_s,
        decode_tokens_per_s=policy.rates.decode_tokens_per_s,
        cold_start_s=policy.cold_start_ms / SECOND,
        ttft_objective_s=policy.ttft_objective_s,
        attainment=policy.attainment,
        readiness=Readiness(interval_s=1.0),
        affinity="none",
        drain_grace_s=60,
    )


def show(compared: Compared) -> None:
    """Print both runs."""
    live, late_ms = compared.live, np.array(compared.live.late_ms)
    met = sum(one <= SERVICE.ttft_objective_s * SECOND for one in live.first_token_ms)
    share = met / max(1, live.statuses.total())
    print(f"{live.statuses.total():,} requests, statuses {dict(live.statuses)}")
    print(f"sent late by {np.median(late_ms):.0f} ms at the median, {late_ms.max():.0f} ms at most")
    print(f"attainment    live {share:7.2%}   simulated {compared.sim_attainment:7.2%}")
    print(
        f"replica-hours live {compared.live_hours:7.3f}   simulated {compared.sim_hours:7.3f}"
        f"   ({compared.over:+.1%})"
    )
    for name, targets, times in (
        ("live", live.targets, live.scaled_ms),
        ("simulated", compared.sim_targets, compared.sim_scaled_ms),
    ):
        steps = zip(targets, times, strict=True)
        print(f"{name:9}", *(f"{target}@{at / MINUTE:.1f}min" for target, at in steps))
    print("decisions in the same order" if compared.is_same_order else "OTHER decisions")


def main() -> int:
    """Compare; the status is 1 if the order or the replica-hours differ."""
    parser = argparse.ArgumentParser(description="the live gateway against sim autoscale")
    parser.add_argument("--speed", type=float, default=20)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=2)
    options = parser.parse_args()
    compared = compare(requests(options.minutes, options.seed), options.speed)
    show(compared)
    return 0 if compared.is_same_order and abs(compared.over) <= OVER_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
