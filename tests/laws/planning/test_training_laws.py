"""What must hold of every training step and of its memory."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenfold.physics.training.arrays import SHARD_CODES, Plans, Shape, gather, take
from tenfold.physics.training.memory import memory_of
from tenfold.physics.training.profile import TrainingProfile
from tenfold.physics.training.step import StepTimes, time_plans
from training_builders import PROFILE, part, plan, shape

PARTS = tuple(name for name in StepTimes.__slots__ if name != "step_s")

powers = st.sampled_from([1.0, 2.0, 4.0, 8.0])
shapes = st.one_of(
    st.builds(
        shape,
        layers=st.integers(8, 96),
        hidden=st.sampled_from([1024, 4096, 8192]),
        ffn=st.sampled_from([2816, 11008, 28672]),
        gated=st.booleans(),
        kv_heads=st.sampled_from([4, 8, 32]),
    ),
    st.builds(
        shape,
        layers=st.integers(8, 64),
        experts=st.sampled_from([8, 64]),
        topk=st.sampled_from([1, 4]),
        ffn=st.sampled_from([1024, 4096]),
        shared_experts=st.sampled_from([0, 1]),
        dense_layers=st.sampled_from([0, 2]),
    ),
)
plans = st.builds(
    plan,
    seq=st.sampled_from([1024.0, 4096.0, 32768.0]),
    micro_batch=st.sampled_from([1.0, 2.0, 4.0]),
    global_batch=st.sampled_from([256.0, 1024.0]),
    tp=powers,
    pp=st.sampled_from([1.0, 2.0, 4.0]),
    dp=st.sampled_from([1.0, 4.0, 32.0]),
    cp=st.sampled_from([1.0, 2.0]),
    ep=st.sampled_from([1.0, 4.0]),
    virtual_stages=st.sampled_from([1.0, 2.0]),
    shard=st.sampled_from([float(code) for code in SHARD_CODES.values()]),
    recompute=st.sampled_from([0.0, 1.0, 2.0]),
    sequence_parallel=st.sampled_from([0.0, 1.0]),
    precision=st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0]),
    nic_bytes_s=st.floats(1e8, 1e11),
    scaleup_ranks=st.sampled_from([4.0, 8.0, 64.0]),
)
profiles = st.builds(
    TrainingProfile,
    flash=st.sampled_from([0.0, 1.0]),
    tp_overlap=st.floats(0, 0.9),
    dp_overlap=st.floats(0, 0.95),
    fsdp_overlap=st.floats(0, 0.95),
    slowdown=st.floats(0, 0.3),
    launch_s=st.floats(1e-5, 2e-3),
)


def step(made: Shape, layout: Plans, profile: TrainingProfile, **changes: float) -> float:
    return float(time_plans(made, layout, part("GB200", **changes), profile).step_s)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(shapes, plans), min_size=2, max_size=6), profiles)
def test_many_plans_at_once_are_timed_as_one_by_one(
    pairs: list[tuple[Shape, Plans]], profile: TrainingProfile
):
    made, layouts = gather([pair[0] for pair in pairs]), gather([pair[1] for pair in pairs])
    accelerator = gather([part("GB200")] * len(pairs))
    together = time_plans(made, layouts, accelerator, profile)
    memory = memory_of(made, layouts, profile)
    for at, (own, layout) in enumerate(pairs):
        alone = time_plans(own, layout, part("GB200"), profile)
        for name in StepTimes.__slots__:
            many = np.broadcast_to(np.asarray(getattr(together, name)), len(pairs))[at]
            assert many == pytest.approx(float(getattr(alone, name)), rel=1e-9, abs=1e-15), name
        peak = float(memory_of(own, layout, profile).peak_bytes)
        assert np.asarray(memory.peak_bytes)[at] == pytest.approx(peak, rel=1e-9)


@settings(deadline=None, max_examples=10)
@given(shapes, st.lists(plans, min_size=3, max_size=5))
def test_long_arrays_are_timed_in_chunks_without_a_seam(made: Shape, some: list[Plans]):
    short = gather(some)
    index = np.arange(5000) % len(some)
    long = time_plans(made, take(short, index), part("GB200"), PROFILE)
    each = np.asarray(time_plans(made, short, part("GB200"), PROFILE).step_s)
    assert np.array_equal(np.asarray(long.step_s), each[index])


@settings(deadline=None)
@given(shapes, plans, profiles)
def test_the_parts_of_a_step_sum_to_it_and_none_is_negative(
    made: Shape, layout: Plans, profile: TrainingProfile
):
    times = time_plans(made, layout, part("GB200"), profile)
    parts = [float(getattr(times, name)) for name in PARTS]
    assert sum(parts) == pytest.approx(float(times.step_s))
    assert min(parts) >= -1e-12


@settings(deadline=None)
@given(shapes, plans, profiles, st.floats(1, 10))
def test_a_faster_network_is_never_slower(
    made: Shape, layout: Plans, profile: TrainingProfile, gain: float
):
    faster = replace(layout, nic_bytes_s=layout.nic_bytes_s * gain)
    assert step(made, faster, profile) <= step(made, layout, profile) * (1 + 1e-9)


@settings(deadline=None)
@given(
    shapes,
    plans,
    profiles,
    st.sampled_from(["hbm_bytes_s", "scaleup_bytes_s", "attention_ceiling"]),
    st.floats(1, 10),
)
def test_more_bandwidth_is_never_slower(
    made: Shape, layout: Plans, profile: TrainingProfile, field: str, gain: float
):
    faster = {field: float(getattr(part("GB200"), field)) * gain}
    assert step(made, layout, profile, **faster) <= step(made, layout, profile) * (1 + 1e-9)


@settings(deadline=None)
@given(shapes, plans, profiles, st.floats(1, 10))
def test_a_narrower_fabric_is_never_faster(
    made: Shape, layout: Plans, profile: TrainingProfile, ratio: float
):
    narrow = replace(layout, oversubscription=ratio)
    assert step(made, narrow, profile) >= step(made, layout, profile) * (1 - 1e-9)


@settings(deadline=None)
@given(shapes, plans, profiles)
def test_memory_falls_with_each_stage_of_sharding(
    made: Shape, layout: Plans, profile: TrainingProfile
):
    # Two layers are whole while others are in shards; with few layers a stage that saves nothing.
    assume(float(made.layers) / float(layout.pp) >= 8 and layout.dp * layout.cp > 1)
    assume(layout.ep <= layout.dp)
    stages = ("none", "zero1", "zero2", "zero3")
    peaks = [
        float(memory_of(made, replace(layout, shard=float(SHARD_CODES[name])), profile).peak_bytes)
        for name in stages
    ]
    assert peaks == sorted(peaks, reverse=True)


@settings(deadline=None)
@given(shapes, plans, profiles)
def test_memory_falls_with_recompute_and_grows_with_the_micro_batch(
    made: Shape, layout: Plans, profile: TrainingProfile
):
    peaks = [
        float(memory_of(made, replace(layout, recompute=code), profile).peak_bytes)
        for code in (0.0, 2.0)
    ]
    # A deep model keeps one vector a layer; a single layer's working set could outweigh that.
    assume(float(made.layers) / float(layout.pp) >= 4)
    assert peaks[1] <= peaks[0]
    batch = layout.global_batch * 4
    small, large = (
        float(
            memory_of(
                made, replace(layout, micro_batch=size, global_batch=batch), profile
            ).peak_bytes
        )
        for size in (1.0, 2.0)
    )
    assert small < large


PROGRAM = """
import sys
import msgspec
from tenfold.study.estimate.train import estimate_train
from tenfold.facts.loader import load_catalogue
from tenfold.model.estimate import TrainRow
rows = [
    TrainRow(id=n, model=model, accelerator=part, gpus=64, tp=4, pp=2, global_batch=128, stack=s)
    for n, (model, part, s) in enumerate([
        ("Llama 3.1 8B", "H100", "NeMo 24.07"),
        ("Qwen3 30B-A3B", "GB200", "Megatron-Bridge 26.04"),
        ("Llama 3.1 70B", "A100", None),
        ("Llama 3.1 70B", "A100", "ours"),
    ])
]
seen = [msgspec.structs.replace(rows[3], step_s=30.0), msgspec.structs.replace(rows[0], step_s=2.0)]
sys.stdout.buffer.write(msgspec.json.encode(estimate_train(rows, load_catalogue(), seen)))
"""


def test_the_same_rows_give_the_same_bytes_whatever_the_hash_seed():
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "4242")
    ]
    assert said[0] == said[1]
    assert said[0].count(b'"step_s"') == 4
