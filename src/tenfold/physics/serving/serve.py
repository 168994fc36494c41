"""One call for the four serving modes, each configuration in its own.

NaN means not given; this is the only module that interprets it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import (
    EngineLimits,
    Served,
    UnderLoad,
    first_token,
    max_throughput,
    static_batch,
    under_load,
)
from tenfold.physics.serving.devices import Devices
from tenfold.physics.serving.engines import ServingProfile, efficiency_of, limits_of
from tenfold.physics.serving.kv_cache import ReplicaLayout, weights_bytes_per_gpu
from tenfold.physics.serving.online import Stream, online
from tenfold.physics.serving.precision import PrecisionWidths, precision_widths
from tenfold.physics.serving.replica import Replica
from tenfold.physics.serving.shapes import Shapes

MODES = ("max-throughput", "static-batch", "first-token", "online")
_GPUS_MAX = 64.0
_WEIGHTS_SHARE_MAX = 0.85
_GATEWAY_S = 0.005


@dataclass(frozen=True, slots=True)
class RequestedLoad:
    """The requested load, one entry per configuration; NaN where not given."""

    tp: Floats
    pp: Floats
    attention_dp: Floats
    input_tokens: Floats
    output_tokens: Floats
    batch: Floats
    qps: Floats
    mode: NDArray[np.str_]
    precision: tuple[str, ...]
    requests: Floats | float = np.nan
    """Length of an online run; without it a stream is endless where its engine's tables are."""
    length_cv: Floats | float = np.nan


def estimate(
    load: RequestedLoad, shape: Shapes, device: Devices, profiles: Sequence[ServingProfile]
) -> tuple[Served, ReplicaLayout]:
    """Return how every configuration serves, and the layout it was given or chosen."""
    number = precision_widths(load.precision, shape)
    layout = layouts(load, shape, device, number, profiles)
    replica = Replica(
        shape,
        device,
        layout,
        number.widths,
        number.math_bits,
        number.expert_math_bits,
        efficiency_of(profiles),
    )
    return serve(replica, limits_of(profiles), load, profiles), layout


def layouts(
    load: RequestedLoad,
    shape: Shapes,
    device: Devices,
    number: PrecisionWidths,
    profiles: Sequence[ServingProfile],
) -> ReplicaLayout:
    """Fill unknown parallelism: the fewest ranks that hold the weights, experts spread where
    engines do so.
    """
    pp = np.where(np.isnan(load.pp), 1.0, load.pp)
    dp = np.where(np.isnan(load.attention_dp), 1.0, np.maximum(load.attention_dp, 1.0))
    spreads = np.array([profile.attention_dp for profile in profiles]) & (shape.experts > 0)
    # Newer engines run experts with data parallel attention whatever a table's column is called.
    swap = spreads & (dp == 1) & (load.tp > 1) & np.isnan(load.attention_dp)
    tp = np.where(swap, 1.0, np.where(np.isnan(load.tp), 1.0, load.tp))
    dp = np.where(swap, load.tp, dp)
    grow = np.isnan(load.tp) | (spreads & (tp * pp * dp == 1))
    while True:
        held = (
            weights_bytes_per_gpu(shape, number.widths, ReplicaLayout(tp, pp, dp))
            < _WEIGHTS_SHARE_MAX * device.memory_bytes
        )
        short = grow & ~held & (tp * pp * dp < _GPUS_MAX)
        if not short.any():
            return ReplicaLayout(tp, pp, dp)
        tp, dp = np.where(short & ~spreads, tp * 2, tp), np.where(short & spreads, dp * 2, dp)


def serve(
    replica: Replica, limits: EngineLimits, load: RequestedLoad, profiles: Sequence[ServingProfile]
) -> Served:
    """Return every configuration under its own mode; each mode is one array call over all."""
    given = load.input_tokens
    # A request without output tokens still gets its first token.
    output = np.fmax(load.output_tokens, 1.0)
    runs = np.array([p.requests(i, o) for p, i, o in zip(profiles, given, output, strict=True)])
    wave = np.array([profile.values["wave"] for profile in profiles])
    flat_out = (load.mode == "max-throughput") & ~np.isnan(load.batch)
    capped = replace(limits, batch_max=np.where(flat_out, load.batch, limits.batch_max))
    by_mode = (
        max_throughput(replica, capped, given, output, runs, wave),
        static_batch(replica, limits, given, output, load.batch),
        first_token(replica, limits, given, load.batch),
        online(replica, limits, _stream(load, output, profiles)),
    )
    picks = [load.mode == name for name in MODES]
    waits = under_load(by_mode[MODES.index("online")])
    loaded = load.mode == "online"
    return Served(
        **{
            name: np.select(picks, [getattr(served, name) for served in by_mode], np.nan)
            for name in Served.__slots__
            if name != "under_load"
        },
        under_load=UnderLoad(
            **{name: np.where(loaded, getattr(waits, name), np.nan) for name in UnderLoad.__slots__}
        ),
    )


def _stream(load: RequestedLoad, output: Floats, profiles: Sequence[ServingProfile]) -> Stream:
    """An open stream where a rate is given, else a closed loop of `batch` clients, else a flood."""
    clients = np.where(np.isnan(load.qps), load.batch, np.nan)
    given = np.broadcast_to(np.asarray(load.requests, dtype=float), clients.shape)
    families = [profile.family for profile in profiles]
    usual = np.array([family.requests_online if family else np.inf for family in families])
    assumed = np.isnan(given)
    return Stream(
        input_tokens=load.input_tokens,
        output_tokens=output,
        qps=np.where(np.isnan(load.qps) & np.isnan(clients), np.inf, load.qps),
        clients=clients,
        requests=np.where(assumed, np.where(np.isnan(clients), usual, np.inf), given),
        gateway_s=np.array([family.gateway_s if family else _GATEWAY_S for family in families]),
        assumed=assumed.astype(float),
        length_cv=load.length_cv,
        poll_steps=np.array([family.poll_steps if family else 0.0 for family in families]),
    )
