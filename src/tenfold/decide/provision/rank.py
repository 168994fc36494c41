"""Rank offers for a job by dollars per unit of useful work, not by the listed price."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from tenfold.model.market.offer import TRUST, Offer, Trust
from tenfold.model.market.quote import Quote, RentalRules, Speed
from tenfold.physics.arrays import Floats
from tenfold.physics.operations.rental import Rental, rental_cost

DETECTION_S = 300.0
"""Until a failure is noticed: health checks every five minutes (an assumption)."""
GB_PER_GBIT = 1 / 8


class Terms(Struct, frozen=True, kw_only=True):
    """Everything known about renting from one provider, with nothing left open."""

    trust: Trust
    egress_usd_per_gb: float
    startup_s: float
    failures_per_1000_node_days: float
    spot_up_h: float
    spot_down_h: float
    availability: float
    assumed: tuple[str, ...] = ()


class RentalJob(Struct, frozen=True, kw_only=True):
    """A job to be rented for. `work` is in units; None is `hours` of work on each offer."""

    work: float | None
    hours: float
    has_state: bool
    """Whether it restarts from checkpoints; replicas of a service do not."""
    data_in_gb: float = 0.0
    data_out_gb: float = 0.0
    egress_in_usd_per_gb: float = 0.0
    """Charged by whoever holds the data now."""
    staging_gbps: float = 10.0
    rules: RentalRules = RentalRules()


class Candidate(Struct, frozen=True):
    """An offer with its terms, and how the job runs on it; None where it cannot."""

    offer: Offer
    terms: Terms
    speed: Speed | None
    why_not: str = ""
    """The rule that excludes it, where there is no speed."""


class Ranking(Struct, frozen=True, kw_only=True):
    """Quotes, cheapest work first, and how many offers each rule excluded."""

    quotes: tuple[Quote, ...]
    excluded: dict[str, int]


def rank(candidates: Sequence[Candidate], job: RentalJob) -> Ranking:
    """Return a quote for each offer that meets the rules, cheapest first."""
    excluded: dict[str, int] = {}
    fit: list[Candidate] = []
    for one in candidates:
        rule = _broken_rule(one, job.rules)
        if rule:
            excluded[rule] = excluded.get(rule, 0) + 1
        else:
            fit.append(one)
    quotes = _quotes(fit, job) if fit else []
    deadline_h = job.rules.deadline_h
    if deadline_h is not None:
        late = sum(one.calendar_h > deadline_h for one in quotes)
        quotes = [one for one in quotes if one.calendar_h <= deadline_h]
        if late:
            excluded["deadline"] = late
    quotes.sort(key=lambda one: (one.usd_per_unit, one.calendar_h, one.offer.name, one.offer.zone))
    return Ranking(quotes=tuple(quotes), excluded=excluded)


def _broken_rule(one: Candidate, rules: RentalRules) -> str:
    """Return the first rule that an offer breaks, or nothing."""
    country = one.offer.country
    if rules.countries and not country:
        return "country-unknown"
    if rules.countries and country not in rules.countries:
        return "residency"
    if TRUST.index(one.terms.trust) > TRUST.index(rules.trust):
        return "trust"
    if one.terms.availability < rules.availability or one.terms.availability <= 0:
        return "availability"
    return one.why_not if one.speed is None else ""


def _quotes(fit: Sequence[Candidate], job: RentalJob) -> list[Quote]:
    speeds = [one.speed for one in fit if one.speed is not None]
    rental = _rental(fit, speeds, job)
    work = (
        job.hours * rental.work_per_hour
        if job.work is None
        else np.full_like(rental.work_per_hour, job.work)
    )
    cost = rental_cost(rental, work, detection_s=DETECTION_S, has_state=job.has_state)
    return [
        Quote(
            offer=one.offer,
            instances=speed.instances,
            gpus=speed.gpus,
            usd_per_hour=float(rental.usd_per_hour[at]),
            usd_per_gpu_hour=one.offer.usd_per_gpu_hour,
            work_per_hour=speed.work_per_hour,
            effective_share=float(cost.effective_share[at]),
            billed_h=float(cost.billed_h[at]),
            calendar_h=float(cost.calendar_h[at]),
            usd=float(cost.usd[at]),
            usd_egress=float(rental.usd_once[at]),
            usd_per_unit=float(cost.usd_per_unit[at]),
            how=speed.how,
            assumed=one.terms.assumed if speed.calibrated else ("speed", *one.terms.assumed),
        )
        for at, (one, speed) in enumerate(zip(fit, speeds, strict=True))
    ]


def _rental(fit: Sequence[Candidate], speeds: Sequence[Speed], job: RentalJob) -> Rental:
    def terms(of: Callable[[Candidate], float]) -> Floats:
        return np.array([of(one) for one in fit], dtype=np.float64)

    def of_speed(value: Callable[[Speed], float]) -> Floats:
        return np.array([value(one) for one in speeds], dtype=np.float64)

    def spot(value: Callable[[Terms], float]) -> Floats:
        return terms(lambda one: value(one.terms) if one.offer.kind == "spot" else 0.0)

    instances = of_speed(lambda speed: float(speed.instances))
    staging_s = job.data_in_gb / (job.staging_gbps * GB_PER_GBIT)
    paid_in = job.data_in_gb * job.egress_in_usd_per_gb
    return Rental(
        usd_per_hour=of_speed(lambda speed: float(speed.units))
        * terms(lambda one: one.offer.usd_micros_per_hour / 1e6),
        work_per_hour=of_speed(lambda speed: speed.work_per_hour),
        nodes=instances,
        failures_per_1000_node_days=terms(lambda one: one.terms.failures_per_1000_node_days),
        reclaims_per_hour=spot(lambda own: 1.0 / own.spot_up_h),
        reclaimed_s=spot(lambda own: own.spot_down_h * 3600.0),
        startup_s=terms(lambda one: one.terms.startup_s)
        + of_speed(lambda speed: speed.cold_start_s),
        save_s=of_speed(lambda speed: speed.save_s),
        availability=terms(lambda one: one.terms.availability),
        staging_s=np.full(len(fit), staging_s),
        usd_once=terms(lambda one: job.data_out_gb * one.terms.egress_usd_per_gb + paid_in),
    )


def moved(before: Ranking, after: Ranking) -> Mapping[str, tuple[int | None, int | None]]:
    """Return the places of each provider before and after a change of prices, from 1."""
    places = [_places(before), _places(after)]
    names = dict.fromkeys([*places[0], *places[1]])
    return {name: (places[0].get(name), places[1].get(name)) for name in names}


def _places(ranking: Ranking) -> dict[str, int]:
    found: dict[str, int] = {}
    for quote in ranking.quotes:
        found.setdefault(quote.offer.provider, len(found) + 1)
    return found
