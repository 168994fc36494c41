"""Peak memory: exact bytes of states, what sharding and recompute save, and the H200's own rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenfold.model.estimate import ShapeRow, TrainEstimate, TrainRow
from tenfold.physics.training.arrays import RECOMPUTE_CODES, SHARD_CODES, parameters
from tenfold.physics.training.memory import fits, memory_of
from tenfold.study.estimate.train import estimate_train
from training_builders import CATALOGUE, PROFILE, part, plan, row, shape

MEASURED = Path(__file__).parents[5] / "shared" / "measured" / "h200_train.jsonl"
OWN = Path(__file__).parents[4] / "benchmarks" / "planner"
GIB = 1 << 30


def peak(**changes: float) -> float:
    return float(memory_of(shape(), plan(**changes), PROFILE).peak_bytes)


def test_plain_mixed_precision_holds_eighteen_bytes_a_parameter():
    """Two of weights, four of gradients, twelve of optimizer."""
    memory = memory_of(shape(), plan(), PROFILE)
    states = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    assert float(states) / float(sum(parameters(shape()))) == pytest.approx(18.0)


def test_each_stage_of_sharding_divides_one_more_part():
    whole = memory_of(shape(), plan(dp=8.0), PROFILE)
    by_stage = {
        name: memory_of(shape(), plan(dp=8.0, shard=float(SHARD_CODES[name])), PROFILE)
        for name in ("zero1", "zero2", "zero3")
    }
    optimizer = float(whole.optimizer_bytes)
    assert float(by_stage["zero1"].optimizer_bytes) == pytest.approx(optimizer / 8)
    assert float(by_stage["zero1"].gradients_bytes) == float(whole.gradients_bytes)
    gradients = float(whole.gradients_bytes)
    assert float(by_stage["zero2"].gradients_bytes) == pytest.approx(gradients / 8)
    assert float(by_stage["zero3"].weights_bytes) < float(whole.weights_bytes) / 4


def test_recompute_trades_memory_for_time():
    kept, full = (peak(recompute=float(RECOMPUTE_CODES[name])) for name in ("none", "full"))
    assert full < kept


def test_unfused_attention_keeps_its_scores_unless_they_are_redone():
    old = type(PROFILE)(flash=0.0)
    none, some = (memory_of(shape(), plan(recompute=code), old).peak_bytes for code in (0.0, 1.0))
    assert float(none) - float(some) > 1e9


def test_the_first_stage_of_a_pipeline_holds_as_many_micro_batches_as_stages():
    deep, shallow = (
        float(memory_of(shape(), plan(pp=4.0, global_batch=b), PROFILE).activations_bytes)
        for b in (64.0, 1.0)
    )
    assert deep == pytest.approx(4 * shallow, rel=0.01)


def test_sequence_parallel_splits_what_tensor_parallel_leaves_whole():
    assert peak(tp=8.0, sequence_parallel=1.0) < peak(tp=8.0)


def test_a_seven_billion_model_fits_no_eighty_gigabytes_without_sharding():
    plans = plan(dp=8.0, shard=np.array([0.0, 1.0]), recompute=2.0)
    assert np.asarray(fits(memory_of(shape(), plans, PROFILE), part())).tolist() == [False, True]


def test_experts_are_divided_by_expert_parallelism():
    routed = shape(experts=64, topk=4, ffn=2048)
    alone = float(memory_of(routed, plan(dp=8.0), PROFILE).weights_bytes)
    spread = float(memory_of(routed, plan(dp=8.0, ep=8.0), PROFILE).weights_bytes)
    _, expert, _ = parameters(routed)
    assert alone - spread == pytest.approx(2 * float(expert) * 7 / 8)


@pytest.mark.skipif(not MEASURED.is_file(), reason="the measured rows are not on this machine")
def test_memory_and_refusals_on_the_h200_are_as_measured():
    raws = [json.loads(line) for line in MEASURED.read_text().splitlines()]
    rows = [h200_row(raw, "pytorch-compile") for raw in raws]
    found = estimate_train(rows, CATALOGUE)
    answers = [answer for answer in found if isinstance(answer, TrainEstimate)]
    assert [answer.fits for answer in answers] == ["error" not in raw for raw in raws]
    errors = [
        abs(answer.memory_gib / raw["peak_gib"] - 1)
        for answer, raw in zip(answers, raws, strict=True)
        if "error" not in raw
    ]
    assert np.median(errors) < 0.06


@pytest.mark.parametrize("name", ["h200_fresh.jsonl", "h200_measured.jsonl"])
def test_every_step_of_our_own_script_allocated_what_is_predicted(name: str):
    raws = [json.loads(line) for line in (OWN / name).read_text().splitlines()]
    found = estimate_train([h200_row(raw, "pytorch-masters") for raw in raws], CATALOGUE)
    for raw, answer in zip(raws, found, strict=True):
        assert isinstance(answer, TrainEstimate)
        assert answer.fits == ("error" not in raw), raw
        if "error" not in raw:
            assert answer.memory_gib == pytest.approx(raw["peak_gib"], rel=0.015), raw


def test_a_stage_of_405b_keeps_what_was_measured_for_each_micro_batch():
    """Eight layers at tp 8 kept 4.004 GiB of an H200 for each micro-batch in flight."""
    large = shape(layers=128, hidden=16384, heads=128, kv_heads=8, ffn=53248, vocab=1000)
    usual = {"tp": 8.0, "pp": 16.0, "seq": 8192.0, "sequence_parallel": 1.0}
    one, two = (
        float(memory_of(large, plan(**usual, global_batch=batch), PROFILE).activations_bytes)
        for batch in (4.0, 5.0)
    )
    assert (two - one) / GIB == pytest.approx(4.004, rel=0.01)


@pytest.mark.parametrize(("gpus", "dp"), [(8192, 64), (16384, 128)])
def test_llama_3_405b_fits_without_recompute_as_it_did(gpus: int, dp: int):
    asked = row(
        model="Llama 3.1 405B",
        gpus=gpus,
        seq=8192,
        global_batch=2048,
        tp=8,
        pp=16,
        dp=dp,
        shard="zero2",
        recompute="none",
        stack="meta",
    )
    [answer] = estimate_train([asked], CATALOGUE)
    assert isinstance(answer, TrainEstimate)
    assert answer.fits
    assert 0.37 < answer.mfu < 0.47


@pytest.mark.parametrize(("gpus", "batch"), [(512, 256), (1024, 512)])
def test_the_recipe_of_nvidia_for_405b_fits_with_gradients_in_16_bits(gpus: int, batch: int):
    """Its performance recipes set `grad_reduce_in_fp32 = False`, and it runs on 80 GB parts."""
    usual: dict[str, Any] = {
        "model": "Llama 3.1 405B",
        "gpus": gpus,
        "seq": 8192,
        "global_batch": batch,
        "micro_batch": 1,
        "tp": 8,
        "pp": 8,
        "cp": 2,
        "virtual_stages": 8,
        "recompute": "none",
        "precision": "fp8",
        "stack": "Megatron-Bridge 25.11",
    }
    whole, half = estimate_train([row(**usual), row(**usual, gradient_precision="bf16")], CATALOGUE)
    assert isinstance(whole, TrainEstimate)
    assert isinstance(half, TrainEstimate)
    assert half.fits
    assert half.step_s < whole.step_s
    gradients = 405.9e9 / 64 * 2 / GIB
    assert whole.memory_gib - half.memory_gib == pytest.approx(gradients, rel=0.07)


def test_gradients_that_are_new_in_every_step_stay_so():
    usual: dict[str, Any] = {"gpus": 1, "stack": "pytorch-masters", "accelerator": "H200"}
    stated, own = estimate_train([row(**usual, gradient_precision="bf16"), row(**usual)], CATALOGUE)
    assert isinstance(stated, TrainEstimate)
    assert isinstance(own, TrainEstimate)
    assert stated.memory_gib == own.memory_gib


def test_recompute_in_some_layers_lies_between_none_and_all():
    full = float(RECOMPUTE_CODES["full"])
    peaks = [peak(recompute=full, recompute_share=share) for share in (0.0, 0.25, 0.5, 1.0)]
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] > peaks[-1]


def h200_row(raw: dict[str, Any], stack: str) -> TrainRow:
    return row(
        model=ShapeRow(
            layers=raw["layers"],
            hidden=raw["hidden"],
            heads=raw["heads"],
            kv_heads=raw["kv"],
            ffn=raw["ffn"],
            vocab=raw["vocab"],
            gated=True,
        ),
        accelerator="H200",
        gpus=1,
        seq=raw["seq"],
        micro_batch=raw["mbs"],
        global_batch=raw["mbs"] * raw["ga"],
        recompute=raw["recompute"],
        stack=stack,
    )
