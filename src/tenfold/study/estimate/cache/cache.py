"""Answer `estimate cache`: what a shared tier of KV cache saves, and when it saves nothing."""

import numpy as np
from msgspec import Struct

from tenfold.compose.fleet import load_facts
from tenfold.model.errors import InputError
from tenfold.model.estimate import NoEstimate, ServeRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.units import GIB
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.kv_cache import ReplicaLayout, kv_bytes_per_token
from tenfold.physics.serving.kvtier import (
    break_even_bytes_per_s,
    shared_bytes_per_s,
    ttft_with_tier_s,
)
from tenfold.physics.serving.precision import precision_widths
from tenfold.physics.serving.shapes import serving_shapes
from tenfold.study.estimate.cache.tier import GB, CachePlace, CacheQuestion, cache_place
from tenfold.study.estimate.cache.traffic import Traffic
from tenfold.study.estimate.fill import shape_of
from tenfold.study.estimate.serve import estimate_serve

TIMES_AS_LARGE = (0.25, 0.5, 1.0, 2.0, 4.0)
DEFAULT_TARGET = 0.9
"""Share of the maximum hit ratio to aim for if no target is given."""


class CacheSize(Struct, frozen=True, kw_only=True):
    """The effect of a tier of one size."""

    gib: float
    hit_ratio: float
    saved_s: float


class CacheAnswer(Struct, frozen=True, kw_only=True):
    """The time saved by the tier, the size for a target, and when recomputing is faster."""

    model: str
    accelerator: str
    gpus: int
    precision: str
    tier: str
    tier_gib: float
    tier_gb_per_s: float
    prompt_tokens: float
    kv_bytes_per_token: float
    prefill_tokens_per_s: float
    hit_ratio: float
    hit_ratio_max: float
    ttft_s: float
    ttft_with_tier_s: float
    saved_s: float
    fetch_gb_per_s: float
    break_even_gb_per_s: float
    fetch_pays: bool
    qps_break_even: float | None
    target: float
    target_gib: float | None
    sizes: tuple[CacheSize, ...]
    notes: tuple[str, ...]


class _Replica(Struct, frozen=True, kw_only=True):
    """The cost of a prompt without a cache."""

    gpus: int
    ttft_s: float
    prompt_tokens: float
    token_bytes: float
    link_bytes_per_s: float
    notes: tuple[str, ...]

    @property
    def tokens_per_s(self) -> float:
        return self.prompt_tokens / self.ttft_s


def estimate_cache(question: CacheQuestion, traffic: Traffic) -> CacheAnswer:
    """Return the effect of a shared tier on the prompts of a model."""
    catalogue = load_facts(question.facts)
    place = cache_place(question, catalogue)
    replica = _replica(question, place, traffic, catalogue)
    held = np.array(TIMES_AS_LARGE) * place.capacity_bytes / replica.token_bytes
    hits = traffic.hit_ratio(held)
    rates, with_tier = _fetched(question, place, replica, hits)
    saved = replica.ttft_s - with_tier
    at = TIMES_AS_LARGE.index(1.0)
    even = float(
        break_even_bytes_per_s(_array(replica.tokens_per_s), _array(replica.token_bytes))[0]
    )
    most = traffic.hit_ratio_max
    target = DEFAULT_TARGET * most if question.target is None else question.target
    target_bytes = traffic.tokens_for(target) * replica.token_bytes
    per_request = float(hits[at]) * replica.prompt_tokens * replica.token_bytes
    pays = min(place.tier_bytes_per_s, replica.link_bytes_per_s) > even
    return CacheAnswer(
        model=question.model,
        accelerator=place.accelerator,
        gpus=replica.gpus,
        precision=question.precision,
        tier=place.tier,
        tier_gib=place.capacity_bytes / GIB,
        tier_gb_per_s=place.tier_bytes_per_s / GB,
        prompt_tokens=replica.prompt_tokens,
        kv_bytes_per_token=replica.token_bytes,
        prefill_tokens_per_s=replica.tokens_per_s,
        hit_ratio=float(hits[at]),
        hit_ratio_max=most,
        ttft_s=replica.ttft_s,
        ttft_with_tier_s=float(with_tier[at]),
        saved_s=float(saved[at]),
        fetch_gb_per_s=float(rates[at]) / GB,
        break_even_gb_per_s=even / GB,
        fetch_pays=float(rates[at]) > even,
        qps_break_even=(place.tier_bytes_per_s - even) / per_request
        if pays and per_request
        else None,
        target=target,
        target_gib=target_bytes / GIB if np.isfinite(target_bytes) else None,
        sizes=tuple(
            CacheSize(
                gib=times * place.capacity_bytes / GIB, hit_ratio=float(hit), saved_s=float(spared)
            )
            for times, hit, spared in zip(TIMES_AS_LARGE, hits, saved, strict=True)
        ),
        notes=replica.notes,
    )


def _fetched(
    question: CacheQuestion, place: CachePlace, replica: _Replica, hits: Floats
) -> tuple[Floats, Floats]:
    """Return the fetch rate and the mean prompt time at each hit ratio."""
    wanted = (question.qps or 0.0) * hits * replica.prompt_tokens * replica.token_bytes
    rates = shared_bytes_per_s(
        _array(place.tier_bytes_per_s), _array(replica.link_bytes_per_s), wanted
    )
    with_tier = ttft_with_tier_s(
        _array(replica.prompt_tokens),
        hits,
        _array(replica.tokens_per_s),
        _array(replica.token_bytes),
        np.maximum(rates, 1.0),
    )
    return rates, with_tier


def _array(value: float) -> Floats:
    return np.array([value])


def _replica(
    question: CacheQuestion, place: CachePlace, traffic: Traffic, catalogue: Catalogue
) -> _Replica:
    row = ServeRow(
        id="prompt",
        model=question.model,
        accelerator=place.accelerator,
        tp=question.tp,
        pp=question.pp,
        precision=question.precision,
        engine=question.engine,
        input_tokens=max(1, round(traffic.prompt_tokens)),
        mode="first-token",
    )
    [answer] = estimate_serve([row], catalogue)
    if isinstance(answer, NoEstimate):
        raise InputError("not-whole", answer.error, "change the replica")
    assert answer.ttft_s is not None, "a single prompt does not queue"
    notes = list(answer.notes)
    if question.qps is None:
        notes.append("no load given: each fetch gets the full rate of the tier (set --qps)")
    if not answer.fits:
        notes.append(f"the model does not fit on {answer.gpus} GPUs")
    shape = serving_shapes([shape_of(question.model, catalogue)])
    one = _array(1.0)
    # The tier stores each head once, even if several ranks hold a copy.
    widths = precision_widths((question.precision,), shape).widths
    token_bytes = kv_bytes_per_token(shape, widths, ReplicaLayout(one, one, one))
    return _Replica(
        gpus=answer.gpus,
        ttft_s=answer.ttft_s,
        prompt_tokens=float(row.input_tokens),
        token_bytes=float(token_bytes[0]),
        link_bytes_per_s=place.node_bytes_per_s * -(-answer.gpus // place.gpus_per_node),
        notes=tuple(notes),
    )
