"""Every format: what it refuses, and that names and texts cannot break its files."""

import pytest
from msgspec.structs import replace

from tenfold.files.launch.formats import FORMATS, render_format, unsupported
from tenfold.model.errors import InputError
from tenfold.model.facts.shape import ModelShape
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

SHAPE = ModelShape(
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256
)
PLAIN = TrainPlan(
    model="llama-3-8b",
    shape=SHAPE,
    seq=8192,
    micro_batch=1,
    global_batch=128,
    accelerator="h100",
    gpus=16,
    gpus_per_node=8,
    dp=16,
    shard="zero3",
)
TENSOR = replace(PLAIN, tp=8, dp=2, sequence_parallel=True)
PIPELINE = replace(PLAIN, pp=4, dp=4, virtual_stages=2, shard="zero1")
CONTEXT = replace(PLAIN, cp=4, dp=4)
EXPERTS = replace(PLAIN, ep=8, shape=replace(SHAPE, ffn=1024, experts=64, experts_per_token=4))


def codes(plan: TrainPlan, format_name: str) -> list[str]:
    return [reason.code for reason in unsupported(plan, format_name)]


def test_every_format_writes_a_plain_data_parallel_plan():
    for name in FORMATS:
        assert unsupported(PLAIN, name) == []
        files = render_format(PLAIN, name, LaunchJob())
        assert files
        assert all(text.endswith("\n") and text.isascii() for text in files.values())


@pytest.mark.parametrize(
    ("plan", "format_name", "code"),
    [
        (TENSOR, "torchrun", "tp-over-one"),
        (PIPELINE, "torchrun", "pp-over-one"),
        (CONTEXT, "torchrun", "cp-over-one"),
        (EXPERTS, "torchrun", "ep-over-one"),
        (replace(PLAIN, precision="fp8"), "torchrun", "precision"),
        (replace(PIPELINE, shard="zero3"), "megatron", "shard-with-pipeline"),
        (replace(PIPELINE, global_batch=4 * 3), "megatron", "micro-batches-uneven"),
        (replace(PIPELINE, shape=replace(SHAPE, layers=33)), "megatron", "layers-uneven"),
        (PIPELINE, "deepspeed", "pp-over-one"),
        (CONTEXT, "deepspeed", "cp-over-one"),
        (EXPERTS, "deepspeed", "ep-over-one"),
        (TENSOR, "deepspeed", "tp-with-zero3"),
        (replace(PLAIN, recompute="selective"), "deepspeed", "recompute-selective"),
        (PIPELINE, "torchtitan", "shard"),
        (replace(PLAIN, shape=replace(SHAPE, gated=False)), "torchtitan", "shape"),
        (replace(TENSOR, sequence_parallel=False), "torchtitan", "sequence-parallel"),
        (replace(PLAIN, precision="fp4"), "torchtitan", "precision"),
        (TENSOR, "sbatch", "tp-over-one"),
        (PIPELINE, "kubernetes", "pp-over-one"),
        (CONTEXT, "ray-train", "cp-over-one"),
    ],
)
def test_a_format_says_what_it_cannot_express(plan: TrainPlan, format_name: str, code: str):
    assert code in codes(plan, format_name)
    with pytest.raises(InputError) as caught:
        render_format(plan, format_name, LaunchJob())
    assert caught.value.code == "cannot-express"
    assert f"`{format_name}` does not support this plan" in caught.value.message


@pytest.mark.parametrize(
    ("plan", "other"),
    [
        (TENSOR, "megatron"),
        (PIPELINE, "megatron"),
        (replace(PIPELINE, shard="zero3"), "torchtitan"),
        (replace(PLAIN, precision="fp4"), "megatron"),
    ],
)
def test_the_hint_names_a_format_that_can(plan: TrainPlan, other: str):
    with pytest.raises(InputError) as caught:
        render_format(plan, "torchrun", LaunchJob())
    assert f"export it as `{other}`" in caught.value.hint
    assert render_format(plan, other, LaunchJob())


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"gpus": 24}, "gpus-not-product"),
        ({"gpus": 12, "dp": 12, "global_batch": 120}, "nodes-not-full"),
        ({"global_batch": 100}, "batch-uneven"),
        ({"shape": replace(SHAPE, learned_positions=2048)}, "sequence-too-long"),
        ({"shape": replace(EXPERTS.shape, experts=60), "ep": 8}, "experts-uneven"),
    ],
)
def test_no_format_writes_a_plan_that_cannot_be(change: dict[str, object], code: str):
    plan = replace(PLAIN, **change)
    for name in FORMATS:
        assert code in codes(plan, name)
    with pytest.raises(InputError, match="does not support") as caught:
        render_format(plan, "megatron", LaunchJob())
    assert "no format supports this plan" in caught.value.hint


def test_a_launcher_is_as_able_as_the_program_it_starts():
    job = LaunchJob(trainer="megatron", image="registry/megatron:1")
    for name in ("sbatch", "kubernetes", "ray-train"):
        assert unsupported(TENSOR, name, job) == []
        assert "--tensor-model-parallel-size" in str(render_format(TENSOR, name, job))
    own = LaunchJob(script=("mine.py", "--tp", "8"), image="registry/mine:1")
    for name in ("torchrun", "sbatch", "kubernetes", "ray-train"):
        assert unsupported(TENSOR, name, own) == []
        assert "mine.py" in str(render_format(TENSOR, name, own))
    titan = LaunchJob(trainer="torchtitan")
    assert [reason.code for reason in unsupported(TENSOR, "ray-train", titan)] == [
        "own-process-group"
    ]


@pytest.mark.parametrize(
    ("job", "field"),
    [
        (LaunchJob(name="Two Words"), "name"),
        (LaunchJob(name="x\n#SBATCH --nodes=99"), "name"),
        (LaunchJob(name="a" * 51), "name"),
        (LaunchJob(partition="gpu\n#SBATCH --nodelist=n1"), "partition"),
        (LaunchJob(team="a b"), "team"),
        (LaunchJob(name="7b"), "name"),
        (LaunchJob(team="a,b"), "team"),
        (LaunchJob(queue="a b"), "queue"),
        (LaunchJob(namespace="-x"), "namespace"),
        (LaunchJob(namespace="Ml_1"), "namespace"),
        (LaunchJob(image="a image"), "image"),
        (LaunchJob(env={"A=B": "c"}), "env"),
        (LaunchJob(env={"LD\nX": "c"}), "env"),
        (LaunchJob(script=("a\0b",)), "script"),
        (LaunchJob(steps=0), "steps"),
        (LaunchJob(time_limit_s=0), "time_limit_s"),
    ],
)
def test_a_name_that_would_break_a_file_is_refused(job: LaunchJob, field: str):
    for name in FORMATS:
        with pytest.raises(InputError) as caught:
            render_format(PLAIN, name, job)
        assert caught.value.field == field


def test_an_unknown_format_error_lists_the_known_ones():
    with pytest.raises(InputError, match="unknown launch format `pbs`") as caught:
        render_format(PLAIN, "pbs", LaunchJob())
    assert "`sbatch`" in caught.value.hint
    with pytest.raises(InputError):
        unsupported(PLAIN, "pbs")


def test_megatron_gets_stages_that_differ_by_a_layer_as_a_layout():
    plan = replace(PIPELINE, virtual_stages=1, shape=replace(SHAPE, layers=33))
    text = "".join(render_format(plan, "megatron", LaunchJob()).values())
    assert f"E{'t' * 8}|{'t' * 8}|{'t' * 9}|{'t' * 8}L" in text
