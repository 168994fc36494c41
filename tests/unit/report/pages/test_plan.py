"""The page of a plan says what was asked, what is recommended and why, in words and charts."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from tenfold.compose.fleet import open_fleet
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.scaling import ScalingCurve
from tenfold.decide.layout.serve import ServeAnswer, ServePlan, ServeRequest
from tenfold.decide.layout.train import TrainAnswer, plan_train
from tenfold.model.facts.shape import ModelShape
from tenfold.model.plan import ServiceDemand, TrainingJob
from tenfold.model.reason import Reason
from tenfold.physics.training.memory import CONTEXT_BYTES, Memory
from tenfold.report.charts.terminal import scaling_chart
from tenfold.report.pages.plan.figures import memory_parts
from tenfold.report.pages.plan.plan import serve_report, train_report
from tenfold.report.pages.plan.words import seconds
from tenfold.report.reasons.render import render
from tenfold.study.plan.target import train_target

SVG = "{http://www.w3.org/2000/svg}"
FLEET = Path(__file__).parents[4] / "examples" / "research-256" / "fleet.toml"
SHAPE = ModelShape(
    layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256
)
JOB = TrainingJob(model="llama-<8b>", tokens=1e12, deadline_s=90 * 86_400.0)
ASK = TrainRequest(job=JOB, shape=SHAPE, seq=8192, global_batch=256)
SERVICE = ServiceDemand(
    model="llama-<8b>", qps=40, input_tokens=1500, output_tokens=300, ttft_s=1.0, tpot_s=0.05
)
SERVE_ASK = ServeRequest(service=SERVICE, shape=SHAPE)
PLAN = ServePlan(
    pool="a&b",
    accelerator="h100",
    engine="vllm",
    precision="fp8",
    tp=2,
    pp=1,
    gpus_per_replica=2,
    replicas=9,
    spare_replicas=1,
    gpus=18,
    qps_per_replica_max=4.85,
    utilisation=0.62,
    ttft_s=0.231,
    tpot_s=0.0412,
    ttft_s_p99=0.52,
    tpot_s_p99=0.0447,
    ttft_s_attained=0.61,
    tpot_s_attained=0.0466,
    output_tokens_per_s=12_000,
    concurrent=500,
    memory_gib=70.0,
    usd_per_hour=45.0,
    cold_start_s=30.0,
    usd_per_million_tokens=1.04,
    enough_gpus=True,
)
SERVE = ServeAnswer(
    searched=64,
    plans=(PLAN, replace(PLAN, replicas=12)),
    why=(Reason("cheapest", sentence="it is cheap"),),
)


@pytest.fixture(scope="module")
def target() -> PlanningTarget:
    return replace(train_target(open_fleet(FLEET)).target, gpus=64, usd_per_gpu_hour=2.5)


@pytest.fixture(scope="module")
def answer(target: PlanningTarget) -> TrainAnswer:
    found = plan_train(ASK, target)
    assert isinstance(found, TrainAnswer)
    return found


def read(page: str) -> tuple[list[str], list[str], str]:
    """Return the titles of sections and of charts, and all words of a page."""
    root = ElementTree.fromstring(page)
    heads = [one.text or "" for one in root.iter("h2")]
    charts = [one.findtext(f"{SVG}title") or "" for one in root.iter(f"{SVG}svg")]
    return heads, charts, " ".join(root.itertext())


def test_a_training_report_has_every_part(answer: TrainAnswer, target: PlanningTarget):
    memory = {"weights": 20e9, "activations": 30e9}
    made = train_report(
        answer, ASK, target, memory_bytes=memory, assumptions=[("Failure preset", "`llama-3`")]
    )
    heads, charts, said = read(made)
    assert heads == [
        "Request",
        "Recommended plan",
        "Why",
        "Scaling",
        "Where the time goes",
        "Memory",
        "Alternatives",
        "Best layouts",
        "Assumptions",
    ]
    assert charts == [
        "Throughput",
        "Efficiency",
        "Step time",
        "Step time by number of GPUs",
        "Memory on the fullest GPU",
        "Pareto-optimal plans",
    ]
    best = answer.plans[0]
    assert best.run is not None
    for words in (
        "llama-<8b>, 8.03B parameters",
        "1T tokens",
        "90 days",
        f"{best.plan.gpus:,} GPUs",
        f"${best.run.usd:,.0f}",
        "$2.50 per GPU-hour",
        "Failure preset",
        "linear scaling",
    ):
        assert words in said, words
    for reason in answer.why:
        assert render(reason)[1:].replace("`", "") in said


def test_a_report_repeats_itself(answer: TrainAnswer, target: PlanningTarget):
    assert train_report(answer, ASK, target) == train_report(answer, ASK, target)


def test_without_a_price_no_dollar_is_named(answer: TrainAnswer, target: PlanningTarget):
    free = replace(target, usd_per_gpu_hour=0.0)
    found = plan_train(ASK, free)
    assert isinstance(found, TrainAnswer)
    heads, charts, said = read(train_report(replace(found, why=()), ASK, free))
    assert "$" not in said
    assert "no price known" in said
    assert "Plans that no other beats" not in charts
    assert "Why" not in heads


def test_a_single_size_and_an_open_length_still_make_a_report(
    answer: TrainAnswer, target: PlanningTarget
):
    best = replace(answer.plans[0], run=None)
    curve = replace(answer.curve, points=answer.curve.points[:1], slower_from=8)
    one = replace(answer, plans=(best,), front=(best,), curve=curve)
    asked = replace(ASK, job=replace(JOB, tokens=None, deadline_s=None, gpus=64, tp=2))
    _, charts, said = read(train_report(one, asked, target))
    assert "Step time by number of GPUs" not in charts
    assert "per million tokens" in said
    assert "tp 2" in said
    assert "adding GPUs makes the job slower" in said


def test_an_answer_without_plans_says_why(target: PlanningTarget):
    bare = TrainAnswer(
        searched=0,
        plans=(),
        front=(),
        curve=ScalingCurve(
            points=(), global_batch=0, searched=0, knee=None, slower_from=None, reasons=()
        ),
        why=(Reason("memory-exceeded", sentence="it does not fit"),),
    )
    assert "It does not fit." in read(train_report(bare, ASK, target))[2]
    assert "No plan found." in read(serve_report(replace(SERVE, plans=()), SERVE_ASK))[2]
    assert scaling_chart(bare.curve).plain == "no size fits"


def test_a_serving_report_names_objectives_replicas_and_cost():
    heads, charts, said = read(serve_report(SERVE, SERVE_ASK, assumptions=[("Price", "on demand")]))
    assert heads[0] == "Request"
    assert charts == ["Dollars per million output tokens", "TPOT against cost"]
    for words in ("9 replicas of 2 x h100, fp8, tensor 2", "a&b", "$1.04", "41.2 ms", "on demand"):
        assert words in said, words


def test_serving_without_a_price_is_drawn_in_gpus():
    free = replace(PLAN, usd_per_hour=0.0, usd_per_million_tokens=0.0)
    _, charts, said = read(serve_report(replace(SERVE, plans=(free,)), SERVE_ASK))
    assert charts == ["GPUs needed"]
    assert "$" not in said


def test_parts_of_memory_add_up_to_the_peak():
    memory = Memory(
        peak_bytes=50e9,
        weights_bytes=10e9,
        gradients_bytes=12e9,
        optimizer_bytes=15e9,
        activations_bytes=18e9,
        logits_bytes=1e9,
    )
    parts = memory_parts(memory)
    assert sum(parts.values()) == pytest.approx(50e9)
    assert parts["runtime"] == CONTEXT_BYTES
    assert 0 < parts["gradients"] < 12e9


def test_the_terminal_curve_shows_sizes_and_the_knee(answer: TrainAnswer):
    wide = scaling_chart(answer.curve, 100).plain
    assert "64" in wide
    # The largest size tried is no knee: nobody knows yet where the curve bends.
    assert ("knee" in wide) != answer.curve.scales_throughout
    bent = replace(answer.curve, knee=answer.curve.points[0].gpus)
    assert "knee" in scaling_chart(bent, 100).plain
    narrow = scaling_chart(answer.curve, 30).plain
    assert max(len(line) for line in narrow.splitlines()) <= 30


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0 s"),
        (0.0412, "41.2 ms"),
        (16.04, "16 s"),
        (150.0, "2.5 min"),
        (10_000.0, "2.78 h"),
        (44.6 * 86_400, "44.6 days"),
        (932.4 * 86_400, "932 days"),
        (4321.0 * 86_400, "4,321 days"),
    ],
)
def test_time_is_said_in_the_unit_that_suits_it(value: float, expected: str):
    assert seconds(value) == expected
