"""Queueing in front of continuous batching, in closed form: what waits, how long, how unevenly.

An engine knows one clock, its step. A step carries one token of every running sequence and, within
a budget of tokens, whole prompts or chunks of them. So requests wait three times: for the step
under way, for the prompts ahead of theirs, and for a slot (a place in the batch and in the KV
cache). Little's law, `in system = rate * response time`, holds at every load by construction of
the fixed points here, and a simulation of single steps checks that they are the right ones.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.arrays import Floats

_TURNS = 48
_QUANTILE_TURNS = 40
_LEAST = 1e-3
# Answers that differ by a twentieth have lost step with each other after a few turns.
_LENGTHS_EQUAL = 0.02


class StepTimes(Protocol):
    """The steps of an engine, as seen by one of its sequences; one array entry per service."""

    def decode_s(self, sequences: Floats) -> Floats:
        """Return the time of a step of `sequences` that carries no prompt."""
        ...

    def steady_s(self, sequences: Floats) -> Floats:
        """Return the mean time between two tokens while every sequence that ends is replaced."""
        ...

    def prompts_s(self, sequences: Floats, prompts: Floats) -> Floats:
        """Return the time in which `prompts` whole prompts pass beside `sequences`."""
        ...


@dataclass(frozen=True, slots=True)
class Service:
    """What bounds a service besides the time of its steps."""

    input_tokens: Floats
    output_tokens: Floats
    slots: Floats
    """Sequences that may hold a place in the batch and in the KV cache at once."""
    budget_tokens: Floats
    """Most tokens of the steps under way, one a stage, those of running sequences included."""
    outside_s: Floats
    """Time a request spends outside the engine: HTTP, tokenising."""
    stages: Floats
    """Pipeline stages: as many steps are under way at once."""
    length_cv: Floats
    """Standard deviation of request lengths over their mean: 0 for equal ones; NaN if unknown."""

    @property
    def slots_usable(self) -> Floats:
        """Slots that prompts can keep full: a step has to carry `input / output` prompt tokens
        for every token it decodes, and both share its budget.
        """
        share = self.output_tokens / (self.input_tokens + self.output_tokens)
        return np.maximum(np.minimum(self.slots, self.budget_tokens * share), 1.0)


@dataclass(frozen=True, slots=True)
class Wait:
    """How long requests wait for their first token, as a distribution.

    `sure_s` is common to all. To it adds a wait for steps: with probability `busy` of mean `busy_s`
    (prompts ahead; exponential but for the share `even`), else uniform up to `step_s`; and a wait
    for a slot: with probability `full` exponential of mean `full_s`.
    """

    sure_s: Floats
    step_s: Floats
    busy: Floats
    busy_s: Floats
    even: Floats
    """Share of the wait for prompts that is even instead: prompts that share a step end with it."""
    full: Floats
    full_s: Floats

    @property
    def mean_s(self) -> Floats:
        """Mean over all requests."""
        steps_s = (1.0 - self.busy) * self.step_s / 2.0 + self.busy * self.busy_s
        return self.sure_s + steps_s + self.full * self.full_s

    def quantile_s(self, share: Floats) -> Floats:
        """Return the wait that `share` of the requests do not exceed."""
        low = np.zeros_like(self.sure_s)
        # Either wait stays below this with a probability above `share`.
        tail = -np.log1p(-share) + 2.0
        high = self.step_s + tail * (self.busy_s + np.where(self.full > 0, self.full_s, 0.0))
        endless = ~np.isfinite(high) | ~np.isfinite(self.sure_s)
        high = np.where(endless, 0.0, high)
        for _ in range(_QUANTILE_TURNS):
            middle = (low + high) / 2.0
            beyond = self._beyond(middle) > 1.0 - share
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.where(endless, np.inf, self.sure_s + (low + high) / 2.0)

    def _beyond(self, wait_s: Floats) -> Floats:
        """Return the share of requests that wait longer than `wait_s` beyond what is sure."""
        idle = np.clip(1.0 - wait_s / np.maximum(self.step_s, 1e-12), 0.0, 1.0)
        waits = wait_s / np.maximum(self.busy_s, 1e-12)
        ahead = (1.0 - self.even) * np.exp(-waits)
        ahead += self.even * np.clip(1.0 - waits / 2.0, 0.0, 1.0)
        steps = (1.0 - self.busy) * idle + self.busy * ahead
        slot = self.full * np.exp(-wait_s / np.maximum(self.full_s, 1e-12))
        return 1.0 - (1.0 - steps) * (1.0 - slot)


@dataclass(frozen=True, slots=True)
class Latency:
    """A service under one load."""

    served_qps: Floats
    capacity_qps: Floats
    running: Floats
    """Sequences in slots."""
    wait: Wait
    tpot_s: Floats
    tpot_sd_s: Floats
    """Standard deviation of the mean time per output token of single requests."""
    overloaded: NDArray[np.bool_]
    """More arrives than can be served: every queue grows without bound."""

    def tpot_quantile_s(self, share: Floats) -> Floats:
        """Return the time per output token that `share` of the requests do not exceed."""
        return self.tpot_s + np.maximum(_normal(share), 0.0) * self.tpot_sd_s


def capacity_qps(steps: StepTimes, service: Service) -> Floats:
    """Return the rate at which requests are served when all slots are in use."""
    slots = service.slots_usable
    return slots / (service.output_tokens * steps.steady_s(slots))


def open_loop(steps: StepTimes, service: Service, qps: Floats) -> Latency:
    """Return the steady state under requests that arrive by chance, `qps` a second.

    Prompts that arrive during one step share the next. With a step of `a` seconds that carries no
    prompt and `b` seconds for each prompt in it, the length of a step follows the arrivals in the
    one before: mean `a / (1 - r)` and the mean that an arrival meets
    `a / (1 - r) + b * r / (1 - r**2)`, with `r = qps * b`. An arrival waits for half of the step
    it meets, and its own step also carries those that arrived in the same one.
    """
    slots = service.slots_usable
    most = capacity_qps(steps, service)
    overloaded = qps >= most
    served = np.minimum(qps, most)
    running = np.where(overloaded, slots, _running(steps, service, served, slots))
    alone_s = steps.decode_s(running)
    own_s = steps.prompts_s(running, np.ones_like(running))
    together = _together(service, running)
    packed_s = steps.prompts_s(running, together) / together
    each_s = np.maximum(packed_s - alone_s / together, 0.0) / service.stages
    load = np.minimum(served * packed_s / service.stages, 1.0 - 1e-9)
    # An idle engine starts at once.
    under_way_s = -np.expm1(-running) * alone_s / service.stages
    met_s = under_way_s / (1.0 - load) + each_s * load / (1.0 - load**2)
    # Those that share a step end together; where one prompt fills it, they end one by one.
    steps_s = (0.5 + 0.5 * load * (2.0 - 1.0 / together)) * met_s
    busy_s = np.maximum(steps_s - (1.0 - load) * under_way_s / 2.0, 0.0) / np.maximum(load, 1e-9)
    # Prompts left behind by a first token are served before the next ones flow freely.
    behind_s = load / (1.0 - load) * (own_s + steps_s / together) / service.stages
    later = np.maximum(service.output_tokens - 1.0, 1.0)
    step_s = steps.steady_s(running)
    least = np.full_like(running, _LEAST)
    full_step_s = steps.prompts_s(least, _room(service, least) / service.input_tokens)
    tpot_s = np.minimum(step_s + behind_s / later, np.maximum(full_step_s, step_s))
    slope = _slope(steps, running)
    full, full_s = _slot_wait(service, running / slots, slope, served / most, slots / most)
    sure_s = service.outside_s + own_s
    wait = Wait(
        sure_s=np.where(overloaded, np.inf, sure_s),
        step_s=under_way_s,
        busy=load,
        busy_s=busy_s,
        even=1.0 - 1.0 / together,
        full=np.where(overloaded, 1.0, full),
        full_s=np.where(overloaded, 0.0, full_s),
    )
    spread_s = _tpot_spread_s(steps, service, served, running, each_s)
    spread_s = np.hypot(spread_s, tpot_s - step_s)
    return Latency(served, most, running, wait, tpot_s, spread_s, overloaded)


def closed_loop(
    steps: StepTimes, service: Service, clients: Floats, runs_of: Floats | float = np.inf
) -> Latency:
    """Return the steady state of `clients` that each send a request when the last is answered.

    Arrivals come with ends of steps and not by chance. Requests of one length whose prompts shared
    a step end in one step and share again, after a step full of others' prompts if there are more
    clients than one step takes in. Requests of mixed lengths share a step with the few that end in
    the same one. If it is not known which, one step full of prompts lies between the two.
    `runs_of` is the number of requests of a run that starts all clients at once, with a burst.
    """
    slots = service.slots_usable
    running = np.minimum(clients, slots)
    hold_s = service.output_tokens * steps.steady_s(running)
    most = capacity_qps(steps, service)
    served = np.minimum(clients / (service.outside_s + hold_s), most)
    response_s = clients / served
    queued_s = np.maximum(response_s - service.outside_s - hold_s, 0.0)
    alone_s = steps.decode_s(running)
    together = np.minimum(running, _together(service, running))
    own_s = steps.prompts_s(running, np.ones_like(running))
    packed_s = steps.prompts_s(running, together)
    groups = running / together
    # An answer ends with a step; the next request finds the step after it under way.
    step_s = np.maximum(alone_s - service.outside_s, alone_s / 2.0)
    step_s = step_s * (1.0 - 1.0 / np.maximum(running, 1.0))
    equal_s = packed_s - own_s + np.clip(groups - 1.0, 0.0, 1.0) * packed_s
    mixed_s = step_s + _prompts_by_steps_s(service, running, together, packed_s)
    equal = np.where(np.isnan(service.length_cv), 0.5, service.length_cv <= _LENGTHS_EQUAL)
    shared_s = equal * np.maximum(equal_s, 0.0) + (1.0 - equal) * mixed_s
    # A slot is held for a first token and the others, which take their steps at least.
    later = np.maximum(service.output_tokens - 1.0, 0.0)
    room_s = np.maximum(hold_s - later * alone_s - own_s, 0.0)
    spread_s = np.minimum(shared_s, room_s)
    first_s = np.where(later > 0, np.minimum(own_s, hold_s) + spread_s, hold_s)
    tpot_s = np.where(later > 0, (hold_s - first_s) / np.maximum(later, 1.0), hold_s)
    burst_s = (groups + 1.0) / 2.0 * packed_s
    started = np.minimum(running / runs_of, 1.0)
    sure_s = service.outside_s + queued_s + first_s - spread_s
    wait = Wait(
        sure_s=sure_s,
        step_s=2.0 * spread_s,
        busy=started,
        busy_s=np.maximum(burst_s - own_s, spread_s),
        even=np.ones_like(sure_s),
        full=np.zeros_like(sure_s),
        full_s=np.zeros_like(sure_s),
    )
    # Every other client interrupts once a turn; by chance during the first token or the others.
    by_chance = served * (first_s + service.outside_s)
    sd_s = packed_s / together * np.sqrt(by_chance) / np.maximum(later, 1.0)
    never = np.zeros(np.shape(served), dtype=bool)
    return Latency(served, most, running, wait, tpot_s, sd_s, never)


def _prompts_by_steps_s(
    service: Service, running: Floats, together: Floats, packed_s: Floats
) -> Floats:
    """Return the wait for prompts of others where each step ends few requests, whatever its length.

    Arrivals are counted in steps here, so a long step brings no more of them than a short one.
    """
    others = np.maximum(running - 1.0, 0.0)
    room = _room(service, running)
    used = others / service.output_tokens * service.input_tokens / room
    ahead = np.minimum(used / (2.0 * np.maximum(1.0 - used, 1e-9)), others / 2.0)
    sharing = np.minimum(others / service.output_tokens, together - 1.0)
    return (ahead + sharing) * packed_s / together


def _together(service: Service, running: Floats) -> Floats:
    """Prompts that one step takes in, at least one (which may take several steps)."""
    return np.maximum(_room(service, running) / service.input_tokens, 1.0)


def _room(service: Service, running: Floats) -> Floats:
    """Tokens of prompts in a step that also carries one token of every running sequence."""
    return np.maximum((service.budget_tokens - running) / service.stages, 1.0)


def _running(steps: StepTimes, service: Service, qps: Floats, slots: Floats) -> Floats:
    # Step time grows with the running number, so bisecting n = qps * tokens * step(n) always ends.
    low, high = np.zeros_like(slots), slots
    for _ in range(_TURNS):
        middle = (low + high) / 2.0
        step_s = steps.steady_s(np.maximum(middle, _LEAST))
        more = qps * service.output_tokens * step_s > middle
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.maximum((low + high) / 2.0, _LEAST)


def _slot_wait(
    service: Service, taken: Floats, slope: Floats, used: Floats, hold_s: Floats
) -> tuple[Floats, Floats]:
    """Return how likely a request waits for a slot and for how long, if so (Sakasegawa).

    The share of slots that are `taken` says how often all are; with free slots, steps are shorter
    and less is taken than `used`, the rate over the capacity, which says how fast a queue drains.
    The number that runs varies the more, the more each sequence slows the others (`slope`).
    """
    slots = service.slots_usable
    used = np.minimum(used, 1.0 - 1e-9)
    rare = (np.sqrt(2.0 * (slots + 1.0)) - 1.0) * np.sqrt(1.0 - slope)
    full = np.minimum(taken, 1.0) ** rare
    lengths = np.where(np.isnan(service.length_cv), 1.0, service.length_cv)
    mixed = (1.0 + lengths**2) / 2.0
    return full, mixed * hold_s / (slots * (1.0 - used))


def _tpot_spread_s(
    steps: StepTimes, service: Service, qps: Floats, running: Floats, each_s: Floats
) -> Floats:
    """Answers differ by the prompts that happen to interrupt them, and by how many run beside."""
    later = np.maximum(service.output_tokens - 1.0, 1.0)
    step_s = steps.steady_s(running)
    interrupted = each_s * np.sqrt(qps * later * step_s) / later
    slope = _slope(steps, running)
    crowd_s = slope * step_s / np.sqrt(np.maximum(running, 1.0) * (1.0 - slope))
    return np.hypot(interrupted, crowd_s)


def _slope(steps: StepTimes, running: Floats) -> Floats:
    """Return by how many percent a step takes longer if one percent more sequences run."""
    more = steps.steady_s(running * 1.05) / steps.steady_s(running) - 1.0
    return np.clip(more / 0.05, 0.0, 0.95)


def _normal(share: Floats) -> Floats:
    """Return the quantile of the normal distribution (Tukey's lambda, within 1% to 99.9%)."""
    return (share**0.135 - (1.0 - share) ** 0.135) / 0.1975
