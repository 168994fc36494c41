"""The contract of `estimate train`: rows in, answers out, in order."""

import msgspec
import numpy as np
import pytest

from tenfold.model.errors import InputError
from tenfold.model.estimate import NoEstimate, ShapeRow, TrainEstimate, TrainRow
from tenfold.study.estimate.train import estimate_train
from training_builders import CATALOGUE, SEVEN_B, row

KEYS = [
    "id",
    "notes",
    "step_s",
    "interval_s",
    "tokens_per_s_per_gpu",
    "model_tflops_per_gpu",
    "mfu",
    "memory_gib",
    "fits",
    "bottleneck",
    "breakdown_s",
]


def answer(*observed: TrainRow, **changes: object) -> TrainEstimate:
    [only] = estimate_train([row(**changes)], CATALOGUE, observed)
    assert isinstance(only, TrainEstimate)
    return only


def error(**changes: object) -> str:
    [only] = estimate_train([row(**changes)], CATALOGUE)
    assert isinstance(only, NoEstimate)
    return only.error


def test_an_answer_has_the_keys_of_the_contract_and_is_plain_json():
    said = answer()
    assert list(msgspec.json.decode(msgspec.json.encode(said))) == KEYS
    assert msgspec.json.decode(msgspec.json.encode(said), type=TrainEstimate) == said


def test_order_is_kept_across_stacks_accelerators_and_errors():
    rows = [
        row(id=1, stack="megatron-core"),
        row(id="two", gpus=7, tp=2),
        row(id=3.5, stack="torchtitan", accelerator="A100"),
        row(id=4, stack="nobody's"),
        row(id=5, stack="megatron-core"),
    ]
    answers = estimate_train(rows, CATALOGUE)
    assert [said.id for said in answers] == [1, "two", 3.5, 4, 5]
    assert [isinstance(said, NoEstimate) for said in answers] == [False, True, False, False, False]
    assert answers[0] == msgspec.structs.replace(answers[4], id=1)


def test_gpus_that_are_not_the_product_of_the_degrees_are_an_error_of_the_row():
    said = error(gpus=16, tp=2, pp=2, dp=2)
    assert "16" in said
    assert "8" in said


def test_an_unknown_model_or_accelerator_is_an_error_of_the_row():
    assert "unknown model" in error(model="GPT-Nothing 1B")
    assert "unknown accelerator" in error(accelerator="H1000")


def test_a_null_dp_is_derived():
    derived = answer(gpus=64, tp=4, pp=2)
    assert derived == answer(gpus=64, tp=4, pp=2, dp=8)


def test_nulls_are_as_good_as_absent_keys():
    assert answer(tp=None, recompute=None, nic_gbps_per_gpu=None) == answer()


def test_assumptions_are_in_the_notes():
    said = answer(seq=None, micro_batch=None, global_batch=None)
    notes = " ".join(said.notes)
    assert "sequence length of" in notes
    assert "micro-batches per rank assumed" in notes
    assert "micro-batch of" in notes


def test_an_unknown_stack_gets_the_default_profile_and_a_note():
    said = answer(stack="our own trainer")
    assert said.notes == ("unknown stack `our own trainer`: default profile used",)
    assert said.step_s > 0
    assert answer(stack=None).notes == ("no stack given; using the default profile",)


def test_the_breakdown_sums_to_the_step():
    for changes in ({}, {"gpus": 64, "tp": 8, "pp": 4}, {"stack": "x", "precision": "fp8"}):
        said = answer(**changes)
        assert sum(said.breakdown_s.values()) == pytest.approx(said.step_s)
        assert f"{said.bottleneck}_s" in said.breakdown_s


def test_the_interval_brackets_the_step_and_is_wider_for_an_unknown_stack():
    widths: list[float] = []
    for stack in ("NeMo 24.07", "nobody's"):
        said = answer(stack=stack)
        low, high = said.interval_s
        assert low < said.step_s < high
        widths.append(high / low)
    assert widths[1] > widths[0]


def test_throughput_and_utilisation_follow_from_the_step():
    said = answer(gpus=8, global_batch=256, seq=4096)
    tokens = 256 * 4096 / said.step_s / 8
    assert said.tokens_per_s_per_gpu == pytest.approx(tokens)
    peak = CATALOGUE.accelerators.get("H100").peak_tflops("bf16")
    assert said.mfu == pytest.approx(said.model_tflops_per_gpu / peak)


def test_recompute_lowers_utilisation_since_it_is_not_counted():
    assert answer(recompute="full").mfu < answer(recompute="none").mfu


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("factor", [0.8, 1.25])
def test_a_few_observed_runs_move_the_estimate_towards_them(count: int, factor: float):
    seen = [row(id=f"s{at}", stack="ours", global_batch=64 * (at + 1)) for at in range(count)]
    truth = [
        said.step_s * factor
        for said in estimate_train(seen, CATALOGUE)
        if isinstance(said, TrainEstimate)
    ]
    runs = [msgspec.structs.replace(one, step_s=s) for one, s in zip(seen, truth, strict=True)]
    before = answer(stack="ours").step_s
    after = answer(*runs, stack="ours").step_s
    assert abs(np.log(after / (before * factor))) < 0.6 * abs(np.log(factor))


def test_observed_runs_of_another_family_change_nothing():
    other = row(stack="torchtitan", step_s=99.0)
    assert answer(other, stack="megatron-core") == answer(stack="megatron-core")


def test_an_observed_run_without_its_step_stops_with_its_line():
    with pytest.raises(InputError, match="observed run 2 has no `step_s`"):
        estimate_train([row()], CATALOGUE, [row(step_s=3.0), row()])


def test_shapes_take_every_key_of_the_contract():
    shape = {
        "layers": 24,
        "hidden": 2048,
        "heads": 16,
        "kv_heads": 4,
        "ffn": 1024,
        "gated": True,
        "vocab": 64000,
        "experts": 32,
        "topk": 4,
        "head_dim": 128,
        "shared_experts": 1,
        "dense_layers": 2,
        "tied": True,
    }
    said = answer(model=msgspec.convert(shape, ShapeRow), ep=8)
    assert said.breakdown_s["moe_s"] > 0


def test_shapes_of_widths_alone_are_enough():
    assert answer(model=ShapeRow(layers=12, hidden=768, heads=12)).fits


@pytest.mark.parametrize(
    ("change", "bigger"),
    [({"tied": True}, False), ({"head_dim": 256}, True), ({"vocab": 256000}, True)],
)
def test_each_width_counts_in_memory(change: dict[str, object], bigger: bool):
    changed = answer(model=msgspec.structs.replace(SEVEN_B, **change)).memory_gib
    assert (changed > answer().memory_gib) is bigger


def test_presets_and_aliases_are_accepted():
    by_name = answer(model="Llama 3.1 8B", accelerator="H100-80G-SXM")
    by_alias = answer(model="llama3.1-8b", accelerator="h100_sxm")
    assert by_name == by_alias


def test_a_model_that_cannot_fit_is_answered_and_said_not_to():
    said = answer(model="Llama 3.1 405B")
    assert said.fits is False
    assert said.memory_gib > 80


def test_fewer_bits_are_faster_where_the_part_has_them():
    steps = [answer(precision=name, stack=None).step_s for name in ("fp32", "tf32", "bf16", "fp8")]
    assert steps == sorted(steps, reverse=True)


def test_a_narrow_network_is_slower():
    wide, narrow = (
        answer(gpus=64, nic_gbps_per_gpu=rate, global_batch=64).step_s for rate in (400.0, 10.0)
    )
    assert narrow > wide


def test_no_rows_are_answered_with_none():
    assert estimate_train([], CATALOGUE) == []
