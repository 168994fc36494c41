"""What a replica delivers in the four ways it is measured: flat out, fixed batch, first token,
online.

Flat-out runs have an end. A published "maximum" is a queue of a few thousand equal requests, so
the last wave runs half empty, and with a batch of 2,860 and 3,000 requests that decides the
figure.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.kv_cache import (
    activation_bytes,
    kv_budget_bytes,
    kv_bytes_per_sequence,
    sequences_max,
    weights_bytes_per_gpu,
)
from tenfold.physics.serving.replica import Load, Replica
from tenfold.physics.serving.step import StepTime, step_time


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """The configured limits of an engine."""

    batch_max: Floats
    """Most sequences that run at once per pipeline stage and attention group."""
    tokens_max: Floats
    """Most tokens of one step; sizes the workspace and spreads prompts over steps."""
    kv_share: Floats
    overhead_bytes: Floats
    """Context, libraries, communication buffers and captured graphs per accelerator."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What memory allows."""

    sequences: Floats
    """Sequences of full length that fit, 0 when the weights alone do not."""
    weights_bytes: Floats
    budget_bytes: Floats
    sequence_bytes: Floats
    fixed_bytes: Floats


@dataclass(frozen=True, slots=True)
class Served:
    """Outcome of one way of serving, per replica."""

    output_tokens_per_s: Floats
    ttft_s: Floats
    tpot_s: Floats
    batch: Floats
    memory_bytes: Floats
    """Peak on the fullest accelerator, cache for `batch` sequences included."""
    fits: Floats
    saturated: Floats
    """1 if the demand exceeds what the replica can run at once."""
    under_load: "UnderLoad | None" = None
    """How requests wait, where a load is given."""


@dataclass(frozen=True, slots=True)
class UnderLoad:
    """A replica under a load of requests; NaN where a configuration has none."""

    offered_qps: Floats
    served_qps: Floats
    capacity_qps: Floats
    """Requests per second with all slots in use, the most that are served for ever."""
    overloaded: Floats
    """1 if more is offered than the capacity: the queue grows as long as that lasts."""
    in_system: Floats
    """Requests sent and not answered in full; infinite if overloaded."""
    queued: Floats
    """Those of them without a slot and without a prompt in work."""
    ttft_p50_s: Floats
    ttft_p90_s: Floats
    ttft_p99_s: Floats
    ttft_goal_s: Floats
    """Waited at most by the share of requests that the stream asks for."""
    tpot_p50_s: Floats
    tpot_p90_s: Floats
    tpot_p99_s: Floats
    tpot_goal_s: Floats


def under_load(served: Served) -> UnderLoad:
    """Return how the requests of replicas wait that were given a load."""
    assert served.under_load is not None, "no load was given"
    return served.under_load


def capacity(replica: Replica, limits: EngineLimits, tokens: Floats) -> Capacity:
    """Return how many sequences of `tokens` a replica holds to their end."""
    shape, layout = replica.shape, replica.layout
    weights = weights_bytes_per_gpu(shape, replica.widths, layout)
    work = activation_bytes(shape, layout, limits.tokens_max) + limits.overhead_bytes
    budget = kv_budget_bytes(replica.device.memory_bytes, weights, work, limits.kv_share)
    held = sequences_max(shape, replica.widths, layout, budget, tokens)
    one = kv_bytes_per_sequence(shape, replica.widths, layout, tokens)
    return Capacity(held, weights, budget, one, weights + work)


def mixed_step(
    replica: Replica, sequences: Floats, input_tokens: Floats, output_tokens: Floats
) -> StepTime:
    """Return the steady step in which every sequence that ends is replaced by a new prompt."""
    load = Load(
        sequences=sequences,
        context_tokens=input_tokens + output_tokens / 2.0,
        prompt_tokens=sequences * input_tokens / output_tokens,
        prompt_span_tokens=input_tokens / 2.0,
    )
    return step_time(replica, load)


def prefill_s(replica: Replica, sequences: Floats, input_tokens: Floats) -> Floats:
    """Return the time through all stages of the prompts of `sequences` requests, nothing else
    running.
    """
    nothing = np.zeros_like(input_tokens)
    load = Load(nothing, nothing, sequences * input_tokens, input_tokens / 2.0)
    return step_time(replica, load).total_s * replica.layout.pp + replica.efficiency.request_s


def decode_s(replica: Replica, sequences: Floats, context_tokens: Floats) -> Floats:
    """Return the time between two tokens of each of `sequences` running sequences."""
    nothing = np.zeros_like(context_tokens)
    load = Load(sequences / replica.layout.pp, context_tokens, nothing, nothing)
    return step_time(replica, load).total_s * replica.layout.pp


def max_throughput(
    replica: Replica,
    limits: EngineLimits,
    input_tokens: Floats,
    output_tokens: Floats,
    requests: Floats,
    wave: Floats,
) -> Served:
    """Return the rate of a queue of `requests` equal requests given at once (`requests` may be
    infinite).
    """
    layout = replica.layout
    room = capacity(replica, limits, input_tokens + output_tokens)
    slots = np.minimum(room.sequences, limits.batch_max * layout.pp * layout.attention_dp)
    batch = np.maximum(np.minimum(slots, requests), 1.0)
    rate = _steady_rate(replica, batch, input_tokens, output_tokens)
    rate_run = _finite_rate(replica, batch, (input_tokens, output_tokens), requests, wave)
    tpot_s = batch / rate
    prompt_s = prefill_s(replica, np.ones_like(batch), input_tokens)
    return Served(
        output_tokens_per_s=rate_run,
        # The mean request of a full wave waits for half of the wave's prompts.
        ttft_s=prompt_s * (1.0 + 0.5 * batch),
        tpot_s=tpot_s,
        batch=batch,
        memory_bytes=fixed_memory_bytes(room, layout.attention_dp, batch),
        fits=(room.sequences >= 1).astype(float),
        saturated=np.ones_like(batch),
    )


def static_batch(
    replica: Replica,
    limits: EngineLimits,
    input_tokens: Floats,
    output_tokens: Floats,
    batch: Floats,
) -> Served:
    """Return the rate of one batch that starts and ends together."""
    room = capacity(replica, limits, input_tokens + output_tokens)
    batch = np.where(np.isnan(batch), np.maximum(room.sequences, 1.0), batch)
    # A batch larger than the cache runs in several passes, as in the published tables.
    turn = np.clip(room.sequences, 1.0, batch)
    prompt_s = prefill_s(replica, turn, input_tokens)
    token_s = decode_s(replica, turn, input_tokens + output_tokens / 2.0)
    total_s = prompt_s + np.maximum(output_tokens - 1.0, 0.0) * token_s
    return Served(
        output_tokens_per_s=turn * output_tokens / total_s,
        ttft_s=prompt_s,
        tpot_s=token_s,
        batch=batch,
        memory_bytes=fixed_memory_bytes(room, replica.layout.attention_dp, turn),
        fits=(room.sequences >= 1).astype(float),
        saturated=(batch > turn).astype(float),
    )


def first_token(
    replica: Replica, limits: EngineLimits, input_tokens: Floats, batch: Floats
) -> Served:
    """Return the time to the first token of `batch` prompts given to an idle replica."""
    room = capacity(replica, limits, input_tokens + 1.0)
    batch = np.where(np.isnan(batch), 1.0, batch)
    prompt_s = prefill_s(replica, batch, input_tokens)
    return Served(
        output_tokens_per_s=batch / prompt_s,
        ttft_s=prompt_s,
        tpot_s=decode_s(replica, batch, input_tokens),
        batch=batch,
        memory_bytes=fixed_memory_bytes(room, replica.layout.attention_dp, batch),
        fits=(room.sequences >= batch).astype(float),
        saturated=np.zeros_like(batch),
    )


def _steady_rate(
    replica: Replica, batch: Floats, input_tokens: Floats, output_tokens: Floats
) -> Floats:
    micro = batch / replica.layout.pp
    step_s = mixed_step(replica, micro, input_tokens, output_tokens).total_s
    return micro / (step_s + replica.efficiency.request_s * micro / output_tokens)


def _finite_rate(
    replica: Replica, batch: Floats, tokens: tuple[Floats, Floats], requests: Floats, wave: Floats
) -> Floats:
    rate = _steady_rate(replica, batch, *tokens)
    finite = np.where(np.isfinite(requests), requests, batch)
    full = np.floor(finite / batch)
    rest = finite - full * batch
    rate_rest = _steady_rate(replica, np.maximum(rest, 1.0), *tokens)
    in_waves = finite / (full * batch / rate + rest / rate_rest)
    # Prompts spread over many steps blur the waves, so only a part of their loss is real.
    return np.where(np.isfinite(requests), rate * (in_waves / rate) ** wave, rate)


def fixed_memory_bytes(room: Capacity, attention_dp: Floats, batch: Floats) -> Floats:
    """Return the peak on the fullest accelerator with `batch` sequences at full length."""
    return room.fixed_bytes + room.sequence_bytes * np.ceil(batch / attention_dp)
