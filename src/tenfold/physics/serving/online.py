"""Latency under load: an open stream of `qps` requests, or a closed loop of `batch` clients.

Continuous batching makes its own load: slower steps keep more sequences running, and more
sequences make slower steps. The running number is the fixed point of Little's law; past
saturation there is none, and a run of finite length reports the queue it built up.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import (
    EngineLimits,
    Served,
    capacity,
    decode_s,
    fixed_memory_bytes,
    prefill_s,
)
from tenfold.physics.serving.replica import Load, Replica
from tenfold.physics.serving.step import step_time

_TURNS = 48
# Lengths differ a little from client to client, so about half of each burst stays a burst.
_BURST_SHARE = 0.5
# Maximum share of time that prompts keep a replica busy; beyond it, `_backlog_s` models how the
# queue grows.
_BUSY_MAX = 0.9


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


def online(replica: Replica, limits: EngineLimits, stream: Stream) -> Served:
    """Return throughput, mean TTFT and mean TPOT of a replica under `stream`."""
    room = capacity(replica, limits, stream.input_tokens + stream.output_tokens)
    groups = replica.layout.pp * replica.layout.attention_dp
    slots = np.maximum(np.minimum(room.sequences, limits.batch_max * groups), 1.0)
    closed = ~np.isnan(stream.clients)
    offered = np.where(closed | np.isnan(stream.qps), np.inf, stream.qps)
    held = np.where(closed, np.minimum(stream.clients, slots), np.minimum(slots, stream.requests))
    prompt_s = prefill_s(replica, np.ones_like(held), stream.input_tokens)
    limit_s = _step_s(replica, stream, held, prompt_s)
    qps_limit = held / (stream.output_tokens * limit_s)
    saturated = offered >= qps_limit * 0.999
    wanted = np.minimum(offered, qps_limit)
    running = np.where(saturated, held, _running(replica, stream, wanted, held, prompt_s))
    step_s = _step_s(replica, stream, running, prompt_s)
    served_qps = np.minimum(offered, qps_limit)
    bulk_s = _bulk_prompt_s(replica, limits, stream)
    ends = ~closed & np.isfinite(stream.requests)
    # In a run with an end every request is taken in, so prompts queue at the rate of arrival.
    taken_qps = np.where(ends, offered, served_qps)
    first_s = _first_s(replica, stream, running, step_s, taken_qps, bulk_s)
    ttft_s = first_s + np.where(
        closed, _burst_s(stream, bulk_s), _backlog_s(stream, slots, offered, qps_limit, bulk_s)
    )
    run = _run(replica, stream, held, slots, offered, bulk_s)
    tpot_run_s = np.maximum(_tail_s(run) / stream.output_tokens, limit_s * 0.2)
    tpot_s = np.where(ends, np.minimum(step_s, tpot_run_s), step_s)
    last_s = run.arrived_s + first_s + _last_answer_s(replica, stream, tpot_s)
    drained_s = np.maximum(run.work_s, last_s)
    rate = np.where(ends, run.requests / drained_s, served_qps) * stream.output_tokens
    return Served(
        output_tokens_per_s=rate,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        batch=running,
        memory_bytes=fixed_memory_bytes(room, replica.layout.attention_dp, running),
        fits=(room.sequences >= 1).astype(float),
        saturated=saturated.astype(float),
    )


def _step_s(replica: Replica, stream: Stream, running: Floats, prompt_s: Floats) -> Floats:
    """Time between two tokens of a sequence, prompts of newcomers included.

    `prompt_s` is the time of one prompt alone, which does not change with what is running.
    """
    stages = replica.layout.pp
    micro = running / stages
    load = Load(
        sequences=micro,
        context_tokens=stream.input_tokens + stream.output_tokens / 2.0,
        prompt_tokens=micro * stream.input_tokens / stream.output_tokens,
        prompt_span_tokens=stream.input_tokens / 2.0,
    )
    host_s = replica.efficiency.request_s * micro / stream.output_tokens
    mixed_s = (step_time(replica, load).total_s + host_s) * stages
    # A prompt may also have a step of its own. With few running sequences and many experts that
    # is cheaper: mixed in, a handful of prompt tokens makes every decode step read every expert.
    ends = running / stream.output_tokens
    apart_s = decode_s(replica, running, load.context_tokens) + ends * prompt_s
    return np.minimum(mixed_s, apart_s)


def _running(
    replica: Replica, stream: Stream, qps: Floats, held: Floats, prompt_s: Floats
) -> Floats:
    # Step time grows with the running number, so bisecting n = qps * tokens * step(n) always
    # ends.
    low, high = np.zeros_like(held), held
    for _ in range(_TURNS):
        middle = (low + high) / 2.0
        step_s = _step_s(replica, stream, np.maximum(middle, 1e-3), prompt_s)
        more = qps * stream.output_tokens * step_s > middle
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    return np.maximum((low + high) / 2.0, 1e-3)


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


def _burst_s(stream: Stream, bulk_s: Floats) -> Floats:
    """Clients that start together with answers of like length also end and return together."""
    return _BURST_SHARE * (stream.clients - 1.0) / 2.0 * bulk_s


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
    endless = ~np.isfinite(stream.requests) & (offered >= qps_limit)
    return np.where(endless, np.inf, np.maximum(prompts_s, slots_s))


@dataclass(frozen=True, slots=True)
class _Run:
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


def _run(
    replica: Replica, stream: Stream, held: Floats, slots: Floats, offered: Floats, bulk_s: Floats
) -> _Run:
    finite = np.where(np.isfinite(stream.requests), stream.requests, held)
    rounds = np.maximum(finite / slots, 1.0)
    context = stream.input_tokens + stream.output_tokens / 2.0
    token_s = decode_s(replica, held, context)
    work_s = finite * bulk_s + rounds * stream.output_tokens * token_s
    return _Run(finite, 1.0 - 1.0 / rounds, finite / offered, bulk_s, token_s, work_s)


def _tail_s(run: _Run) -> Floats:
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
