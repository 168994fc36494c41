"""What keeps a planted fleet up, sized for the factors that its layers are to stand."""

from math import sqrt
from random import Random

from tenfold.model.facts.failure_law import NO_FAILURES, FailureLaw
from tenfold.model.growth.growth import (
    Controller,
    GrowSpec,
    Monitoring,
    Operations,
    ServiceLoad,
)
from tenfold.model.units import Bytes
from tests.rigs.planted.failure_truth import spares_break
from tests.rigs.planted.plan import NODE_GPUS, Replica, Work

SHORTFALL = 0.01
RESTARTED = 0.4
"""Part of the faults that a restart mends in a quarter of an hour, without hands."""
RESTART_H = 0.25
REPAIR_H_LEAST, REPAIR_H_MOST = 0.01, 24 * 90.0
BYTES_PER_SAMPLE = 1.7
_HALVINGS = 30
SERVICE = ServiceLoad(
    name="chat",
    model="Llama 3 8B",
    qps=1.0,
    input_tokens=1_000,
    output_tokens=200,
    ttft_s=2.0,
    tpot_s=0.1,
    pool="train",
)
"""The service of planted fleets, but for the requests that it gets."""


class Upkeep:
    """Draws what each part is made of, once, and solves the rest."""

    def __init__(
        self, draw: Random, wanted: dict[str, float], nodes: int, replica: Replica | None
    ) -> None:
        self.draw, self.wanted, self.nodes, self.replica = draw, wanted, nodes, replica
        self.spares = draw.randint(4, 20)
        self.per_1000_days = draw.uniform(5.0, 30.0)
        self.arrival_cv = draw.choice((1.0, 1.5, 2.0))
        self.frailty = draw.choice((None, 1.0, 3.0))
        self.repair_skew = draw.choice((1.0, 1.5))
        """Mean repair over median repair."""
        self.cares = draw.random() < 0.4
        """Whether hands are counted by nodes to look after, not by repairs."""
        self.crew = float(draw.randint(1, 6))

    def failures(self) -> FailureLaw:
        """Return how often nodes fail and how long they are away, where somebody asks."""
        repairs = "operations" in self.wanted and not self.cares
        if "spares" not in self.wanted and not repairs:
            return NO_FAILURES
        stands = self.wanted.get("spares", 2.0)
        low, high = REPAIR_H_LEAST, REPAIR_H_MOST
        for _ in range(_HALVINGS):
            middle = (low * high) ** 0.5
            found = spares_break(self._law(middle), self.nodes, self.spares, SHORTFALL)
            low, high = (middle, high) if found > stands else (low, middle)
        return self._law(low)

    def _law(self, repair_h: float) -> FailureLaw:
        return FailureLaw(
            name="planted",
            faults_per_1000_node_days=self.per_1000_days,
            frailty_shape=self.frailty,
            arrival_cv=self.arrival_cv,
            burst_nodes_max=8,
            repair_h_median=repair_h / self.repair_skew,
            repair_h_mean=repair_h,
            away_s=RESTART_H * 3_600,
            causes={"gpu": 1 - RESTARTED, "host": RESTARTED},
            transient_causes=("host",),
        )

    def operations(self) -> Operations:
        """Return spares and hands; what is not planted is not told."""
        stands = self.wanted.get("operations")
        repairs = self.per_1000_days / 1_000 * self.nodes * (1 - RESTARTED)
        told = stands is not None
        return Operations(
            crew=self.crew if told else None,
            repairs_per_person_day=None
            if stands is None or self.cares
            else repairs * stands / self.crew,
            nodes_per_person_most=self.nodes * stands / self.crew
            if stands is not None and self.cares
            else None,
            spares=self.spares if "spares" in self.wanted else None,
        )

    def monitoring(self, told: bool) -> Monitoring:
        """Return what is scraped against what is taken in, or against where it is kept."""
        if not told:
            return Monitoring()
        draw, stands = self.draw, self.wanted["monitoring"]
        a_node, a_gpu = draw.uniform(200.0, 2_000.0), draw.uniform(20.0, 200.0)
        interval_s, days = draw.choice((5.0, 15.0, 30.0)), draw.choice((15.0, 90.0))
        per_s = self.nodes * (a_node + a_gpu * NODE_GPUS) / interval_s
        kept = draw.random() < 0.5
        store = Bytes(round(per_s * 86_400 * days * BYTES_PER_SAMPLE * stands))
        return Monitoring(
            series_per_node=a_node,
            series_per_gpu=a_gpu,
            interval_s=interval_s,
            samples_per_s_most=None if kept else per_s * stands,
            retention_days=days if kept else None,
            bytes_per_sample=BYTES_PER_SAMPLE,
            store_tb=store / 10**12 if kept else None,
        )

    def controllers(self, work: Work | None) -> tuple[Controller, ...]:
        """Return what admits jobs: by what each costs it, or by heads a turn of one queue."""
        stands = self.wanted.get("admission")
        if stands is None or work is None:
            return ()
        if work.teams > 1 or self.draw.random() < 0.5:
            return (Controller(kind="tenfold", cost_ms_per_job=1_000 / _fast_enough(stands, work)),)
        heads = self.draw.randint(1, 4)
        cycles = 60 * _fast_enough(stands, work) / heads
        return (Controller(kind="kueue", cycles_per_min=cycles, heads_per_cycle=heads),)

    def services(self, *, grows: bool) -> tuple[ServiceLoad, ...]:
        """Return the service with its requests: bound by GPUs, or by replicas it may have.

        Where nodes grow with requests, only the replicas that it may have can bind.
        """
        stands, replica = self.wanted.get("serving"), self.replica
        if stands is None or replica is None:
            return ()
        fit = self.nodes * NODE_GPUS // replica.gpus
        if not grows and self.draw.random() < 0.5:
            return (_asked(fit * replica.qps / stands, None),)
        most = max(1, self.draw.randint(fit // 4, fit // 2))
        return (_asked(most * replica.qps / stands, most),)


def _fast_enough(stands: float, work: Work) -> float:
    """Return starts a second with which jobs wait as long as they may at a factor (M/D/1)."""
    comes, most_s = stands / work.every_s, GrowSpec().limits.admission_wait_s_most
    return (comes + sqrt(comes * comes + 2 * comes / most_s)) / 2


def _asked(qps: float, replicas_most: int | None) -> ServiceLoad:
    return ServiceLoad(
        name=SERVICE.name,
        model=SERVICE.model,
        qps=qps,
        input_tokens=SERVICE.input_tokens,
        output_tokens=SERVICE.output_tokens,
        ttft_s=SERVICE.ttft_s,
        tpot_s=SERVICE.tpot_s,
        pool=SERVICE.pool,
        replicas_most=replicas_most,
    )
