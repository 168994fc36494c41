"""Latency under load: an open stream of `qps` requests, or a closed loop of `batch` clients.

Continuous batching makes its own load: slower steps keep more sequences running, and more
sequences make slower steps. The running number is the fixed point of Little's law; at the capacity
there is none, and the queue of an endless stream grows without bound. A run with an end reports
the queue that it built up until then.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import (
    EngineLimits,
    Served,
    UnderLoad,
    capacity,
    decode_s,
    fixed_memory_bytes,
    prefill_s,
)
from tenfold.physics.serving.queueing import (
    Latency,
    Service,
    Wait,
    closed_loop,
    open_loop,
)
from tenfold.physics.serving.replica import Load, Replica
from tenfold.physics.serving.step import step_time

# Maximum share of time that prompts keep a replica busy in a run with an end; beyond it,
# `_backlog_s` models how the queue grows.
_BUSY_MAX = 0.9
_GOAL = 0.99
# Stands in for the rate of an open stream where there is a closed loop.
_ANY_QPS = 1e-3
_NO_BUDGET = 1e9


@dataclass(frozen=True, slots=True)
class Stream:
    """An open stream or a closed loop; exactly one of `qps` and `clients` is finite per entry."""

    input_tokens: Floats
    output_tokens: Floats
    qps: Floats
    """Requests per second; infinite gives every request at once, NaN means a closed loop."""
    clients: Floats
    """Concurrent clients of a closed loop; NaN means an open stream."""
    requests: Floats
    """Length of the run; infinite for a service that never ends."""
    gateway_s: Floats
    """Time a request spends outside the engine: HTTP, tokenising, scheduling."""
    assumed: Floats | float = 0.0
    """1 where nobody gave the length of the run: then an overload is said to last for ever."""
    length_cv: Floats | float = np.nan
    """Standard deviation of request lengths over their mean; NaN if unknown."""
    poll_steps: Floats | float = 0.0
    """Steps between two looks for new requests, in a closed loop."""
    goal: Floats | float = _GOAL
    """Share of requests that `UnderLoad.ttft_goal_s` and `tpot_goal_s` hold for."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of a replica under the requests of a stream."""

    replica: Replica
    stream: Stream
    budget_tokens: Floats
    prompt_s: Floats
    """One prompt alone, which does not change with what is running."""

    def decode_s(self, sequences: Floats) -> Floats:
        return decode_s(self.replica, sequences, self.context_tokens)

    def steady_s(self, sequences: Floats) -> Floats:
        stream, stages = self.stream, self.replica.layout.pp
        micro = sequences / stages
        load = Load(
            sequences=micro,
            context_tokens=self.context_tokens,
            prompt_tokens=micro * stream.input_tokens / stream.output_tokens,
            prompt_span_tokens=stream.input_tokens / 2.0,
        )
        host_s = self.replica.efficiency.request_s * micro / stream.output_tokens
        mixed_s = (step_time(self.replica, load).total_s + host_s) * stages
        # A prompt may also have a step of its own. With few running sequences and many experts
        # that is cheaper: mixed in, a handful of prompt tokens makes every decode step read every
        # expert.
        ends = sequences / stream.output_tokens
        apart_s = self.decode_s(sequences) + ends * self.prompt_s
        return np.minimum(mixed_s, apart_s)

    def prompts_s(self, sequences: Floats, prompts: Floats) -> Floats:
        stream, stages = self.stream, self.replica.layout.pp
        tokens = prompts * stream.input_tokens
        room = np.maximum(self.budget_tokens - sequences / stages, 1.0)
        chunks = np.maximum(tokens / room, 1.0)
        span = stream.input_tokens / 2.0
        load = Load(sequences / stages, self.context_tokens, tokens / chunks, span)
        one_s = step_time(self.replica, load).total_s * stages
        return chunks * one_s + prompts * self.replica.efficiency.request_s

    @property
    def context_tokens(self) -> Floats:
        return self.stream.input_tokens + self.stream.output_tokens / 2.0


def online(replica: Replica, limits: EngineLimits, stream: Stream) -> Served:
    """Return throughput, mean TTFT and mean TPOT of a replica under `stream`."""
    room = capacity(replica, limits, stream.input_tokens + stream.output_tokens)
    layout = replica.layout
    groups = layout.pp * layout.attention_dp
    slots = np.maximum(np.minimum(room.sequences, limits.batch_max * groups), 1.0)
    alone_s = prefill_s(replica, np.ones_like(slots), stream.input_tokens)
    budget = limits.tokens_max * layout.attention_dp
    steps = _Steps(replica, stream, budget, alone_s)
    service = Service(
        input_tokens=stream.input_tokens,
        output_tokens=stream.output_tokens,
        slots=slots,
        budget_tokens=budget * layout.pp,
        outside_s=np.asarray(stream.gateway_s, dtype=float),
        stages=layout.pp,
        length_cv=np.broadcast_to(np.asarray(stream.length_cv, dtype=float), slots.shape),
    )
    found = _found(steps, limits, service)
    return Served(
        output_tokens_per_s=found.served_qps * stream.output_tokens,
        ttft_s=found.wait.mean_s,
        tpot_s=found.tpot_s,
        batch=found.running,
        memory_bytes=fixed_memory_bytes(room, layout.attention_dp, found.running),
        fits=(room.sequences >= 1).astype(float),
        saturated=found.saturated.astype(float),
        under_load=_under_load(stream, found),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found of a stream or a loop, in steady state or in a run with an end."""

    offered_qps: Floats
    served_qps: Floats
    wait: Wait
    tpot_s: Floats
    running: Floats
    saturated: NDArray[np.bool_]
    steady: Latency


def _found(steps: _Steps, limits: EngineLimits, service: Service) -> _Found:
    stream, slots = steps.stream, service.slots
    closed = ~np.isnan(stream.clients)
    offered = np.where(closed | np.isnan(stream.qps), np.inf, stream.qps)
    endless = open_loop(steps, service, np.where(closed, _ANY_QPS, offered))
    steady = endless
    if closed.any():
        steady = _either(closed, _closed(steps, service, closed), endless)
    found = _Found(
        offered_qps=np.where(closed, steady.served_qps, offered),
        served_qps=steady.served_qps,
        wait=steady.wait,
        tpot_s=steady.tpot_s,
        running=steady.running,
        saturated=np.where(closed, stream.clients > slots, endless.overloaded),
        steady=steady,
    )
    ends = ~closed & np.isfinite(stream.requests)
    if not ends.any():
        return found
    run = _FiniteRun.of(steps, limits, service, offered)
    # Where nobody said when it ends, an overload does not.
    lasting = endless.overloaded & (np.asarray(stream.assumed) > 0) & np.isfinite(stream.qps)
    return replace(
        found,
        served_qps=np.where(ends, run.served_qps, found.served_qps),
        wait=_pick(ends & ~lasting, run.wait, found.wait),
        tpot_s=np.where(ends, run.tpot_s, found.tpot_s),
        running=np.where(ends, run.running, found.running),
        saturated=np.where(ends, run.saturated, found.saturated),
    )


def _closed(steps: _Steps, service: Service, closed: NDArray[np.bool_]) -> Latency:
    stream = steps.stream
    clients = np.where(closed, stream.clients, 1.0)
    step_s = steps.decode_s(np.minimum(clients, service.slots))
    polled = replace(service, outside_s=service.outside_s + 0.5 * stream.poll_steps * step_s)
    return closed_loop(steps, polled, clients, np.where(closed, stream.requests, np.inf))


def _under_load(stream: Stream, found: _Found) -> UnderLoad:
    wait, tpot_s, served_qps = found.wait, found.tpot_s, found.served_qps
    closed = ~np.isnan(stream.clients)
    later = np.maximum(stream.output_tokens - 1.0, 0.0)
    in_system = np.where(closed, stream.clients, served_qps * (wait.mean_s + later * tpot_s))
    every = np.ones_like(tpot_s)
    return UnderLoad(
        offered_qps=found.offered_qps,
        served_qps=served_qps,
        capacity_qps=found.steady.capacity_qps,
        overloaded=found.steady.overloaded.astype(float),
        in_system=in_system,
        queued=np.maximum(in_system - found.running, 0.0),
        ttft_p50_s=wait.quantile_s(0.5 * every),
        ttft_p90_s=wait.quantile_s(0.9 * every),
        ttft_p99_s=wait.quantile_s(0.99 * every),
        ttft_goal_s=wait.quantile_s(stream.goal * every),
        tpot_p50_s=tpot_s,
        tpot_p90_s=tpot_s + _beyond_s(found.steady, 0.9),
        tpot_p99_s=tpot_s + _beyond_s(found.steady, 0.99),
        tpot_goal_s=tpot_s + _beyond_s(found.steady, stream.goal),
    )


def _beyond_s(steady: Latency, share: Floats | float) -> Floats:
    return steady.tpot_quantile_s(np.asarray(share, dtype=float)) - steady.tpot_s


def _either(closed: NDArray[np.bool_], loop: Latency, stream: Latency) -> Latency:
    return Latency(
        served_qps=np.where(closed, loop.served_qps, stream.served_qps),
        capacity_qps=stream.capacity_qps,
        running=np.where(closed, loop.running, stream.running),
        wait=_pick(closed, loop.wait, stream.wait),
        tpot_s=np.where(closed, loop.tpot_s, stream.tpot_s),
        tpot_sd_s=np.where(closed, loop.tpot_sd_s, stream.tpot_sd_s),
        overloaded=~closed & stream.overloaded,
    )


def _pick(where: NDArray[np.bool_], one: Wait, other: Wait) -> Wait:
    return Wait(
        sure_s=np.where(where, one.sure_s, other.sure_s),
        step_s=np.where(where, one.step_s, other.step_s),
        busy=np.where(where, one.busy, other.busy),
        busy_s=np.where(where, one.busy_s, other.busy_s),
        even=np.where(where, one.even, other.even),
        full=np.where(where, one.full, other.full),
        full_s=np.where(where, one.full_s, other.full_s),
    )


@dataclass(frozen=True, slots=True)
class _FiniteRun:
    """An open stream of so many requests, from the first to the last answer."""

    wait: Wait
    tpot_s: Floats
    served_qps: Floats
    running: Floats
    saturated: NDArray[np.bool_]

    @staticmethod
    def of(steps: _Steps, limits: EngineLimits, service: Service, offered: Floats) -> "_FiniteRun":
        """Return what a run measures that takes in every request, however long they queue."""
        replica, stream, slots = steps.replica, steps.stream, service.slots
        held = np.minimum(slots, stream.requests)
        limit_s = steps.steady_s(held)
        qps_limit = held / (stream.output_tokens * limit_s)
        saturated = offered >= qps_limit * 0.999
        few = replace(service, slots=held, budget_tokens=np.full_like(held, _NO_BUDGET))
        under = open_loop(steps, few, np.minimum(offered, qps_limit * 0.999))
        running = np.where(saturated, held, under.running)
        step_s = steps.steady_s(running)
        bulk_s = _bulk_prompt_s(replica, limits, stream)
        first_s = _first_s(replica, stream, running, step_s, offered, bulk_s)
        backlog_s = _backlog_s(stream, slots, offered, qps_limit, bulk_s)
        shape = _shape(replica, stream, held, slots, offered, bulk_s)
        tpot_run_s = np.maximum(_tail_s(shape) / stream.output_tokens, limit_s * 0.2)
        tpot_s = np.minimum(step_s, tpot_run_s)
        last_s = shape.arrived_s + first_s + _last_answer_s(replica, stream, tpot_s)
        drained_s = np.maximum(shape.work_s, last_s)
        none = np.zeros_like(held)
        # A queue that grows from nothing: waits are spread evenly up to twice their mean. With a
        # slot for each, requests wait as in a lasting stream, but for none of them.
        grown = Wait(first_s, 2.0 * backlog_s, none, none, none, none, none)
        met = replace(under.wait, full=none, full_s=none)
        wait = _pick(saturated | (backlog_s > 0) | (under.wait.busy > _BUSY_MAX), grown, met)
        return _FiniteRun(wait, tpot_s, shape.requests / drained_s, running, saturated)


def _bulk_prompt_s(replica: Replica, limits: EngineLimits, stream: Stream) -> Floats:
    """Prompt time per request when prompts queue, so that each step is filled with them."""
    packed = np.maximum(limits.tokens_max / stream.input_tokens, 1.0)
    return prefill_s(replica, packed, stream.input_tokens) / packed


def _first_s(
    replica: Replica, stream: Stream, running: Floats, step_s: Floats, qps: Floats, bulk_s: Floats
) -> Floats:
    context = stream.input_tokens + stream.output_tokens / 2.0
    own = Load(running / replica.layout.pp, context, stream.input_tokens, stream.input_tokens / 2.0)
    own_s = step_time(replica, own).total_s * replica.layout.pp + replica.efficiency.request_s
    # Prompts queue behind each other (one server, fixed service time) and behind the step under
    # way.
    busy = np.clip(qps * bulk_s, 0.0, _BUSY_MAX)
    under_way_s = -np.expm1(-running) * step_s / 2.0
    wait_s = busy / (2.0 * (1.0 - busy)) * bulk_s + under_way_s
    return own_s + wait_s + stream.gateway_s


def _backlog_s(
    stream: Stream, slots: Floats, offered: Floats, qps_limit: Floats, bulk_s: Floats
) -> Floats:
    """Mean wait that builds up over a run: prompts go first, so slots only bind when they run
    out.
    """
    finite = np.where(np.isfinite(stream.requests), stream.requests, 0.0)
    prompts_s = finite / 2.0 * np.maximum(bulk_s - 1.0 / offered, 0.0)
    late = np.maximum(finite - slots, 0.0) / np.maximum(finite, 1.0)
    slots_s = late * finite / 2.0 * np.maximum(1.0 / qps_limit - 1.0 / offered, 0.0)
    return np.maximum(prompts_s, slots_s)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A run with an end; where a stream has none, of as many requests as run at once."""

    requests: Floats
    late: Floats
    """Share of the requests that wait for a slot when all are given at once."""
    arrived_s: Floats
    """When the last request arrives."""
    bulk_s: Floats
    token_s: Floats
    """A step with all slots in use and no prompt in it."""
    work_s: Floats
    """Length of the run if all requests were given at once."""


def _shape(
    replica: Replica, stream: Stream, held: Floats, slots: Floats, offered: Floats, bulk_s: Floats
) -> _Shape:
    finite = np.where(np.isfinite(stream.requests), stream.requests, held)
    rounds = np.maximum(finite / slots, 1.0)
    context = stream.input_tokens + stream.output_tokens / 2.0
    token_s = decode_s(replica, held, context)
    work_s = finite * bulk_s + rounds * stream.output_tokens * token_s
    return _Shape(finite, 1.0 - 1.0 / rounds, finite / offered, bulk_s, token_s, work_s)


def _tail_s(run: _Shape) -> Floats:
    """Time from the mean first token to the end of a run, which bounds the mean answer.

    It follows from the work, never from the time left after a first token: otherwise a slower
    replica, whose first tokens come later, would seem to write the others faster.
    """
    prompts_s = np.maximum(run.requests * run.bulk_s - run.arrived_s, 0.0)
    slots_s = run.late * np.maximum(run.work_s - run.arrived_s, 0.0)
    wait_s = (run.arrived_s + np.maximum(prompts_s, slots_s)) / 2.0
    queue = np.minimum(_BUSY_MAX / (2.0 * (1.0 - _BUSY_MAX)), run.requests / 2.0)
    first_s = queue * run.bulk_s + run.token_s
    return np.maximum(run.work_s - wait_s - first_s, run.arrived_s / 2.0)


def _last_answer_s(replica: Replica, stream: Stream, tpot_s: Floats) -> Floats:
    """Time of the answer that ends a run: the others end before it, so it ends alone."""
    context = stream.input_tokens + stream.output_tokens / 2.0
    alone_s = decode_s(replica, np.ones_like(tpot_s), context)
    return stream.output_tokens * (tpot_s + alone_s) / 2.0
