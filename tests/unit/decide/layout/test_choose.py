"""The recommended size, and the limits that it misses."""

from pathlib import Path

import pytest

from tenfold.decide.layout.train import TrainAnswer
from tenfold.report.reasons.render import render
from tenfold.study.plan.train import TrainQuestion, plan_training

DAY = 86_400
FLEET = '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = {nodes}\ngpus_per_node = 8\n'


@pytest.fixture
def plan(tmp_path: Path):
    def ask(model: str, nodes: int, **more: object):
        path = tmp_path / "fleet.toml"
        path.write_text(FLEET.format(nodes=nodes))
        return plan_training(TrainQuestion(model=model, fleet=path, **more))  # pyright: ignore

    return ask


def limits(planned) -> list[str]:
    """Return the codes about limits, in order."""
    assert isinstance(planned.answer, TrainAnswer)
    return [one.code for one in planned.answer.why if one.code.endswith(("-met", "-missed"))]


def sizes(planned):
    """Return days and dollars of the best layout at each size that was searched."""
    answer = planned.answer
    assert isinstance(answer, TrainAnswer)
    return [point.gpus for point in answer.curve.points]


@pytest.mark.parametrize("over", [{"deadline_s": DAY}, {"budget_usd": 1.0}])
def test_a_requested_size_that_misses_a_limit_says_so(plan, over):
    planned = plan("Llama 3.1 70B", 64, gpus=64, tokens=1e12, **over)
    [code] = limits(planned)
    assert code == f"size-{'deadline' if 'deadline_s' in over else 'budget'}-missed"


def test_a_requested_size_that_meets_its_limits_misses_none(plan):
    planned = plan("Llama 3.1 70B", 64, gpus=64, tokens=1e12, deadline_s=1_000 * DAY)
    assert limits(planned) == []


def test_both_missed_limits_are_named(plan):
    planned = plan("Llama 3.1 70B", 256, tokens=1e12, deadline_s=DAY, budget_usd=5)
    assert limits(planned) == ["deadline-missed", "budget-missed"]


def test_a_deadline_that_only_costs_too_much_is_met_and_the_budget_is_not(plan):
    planned = plan("Llama 3.1 70B", 256, tokens=1e12, deadline_s=100 * DAY, budget_usd=5)
    assert limits(planned) == ["deadline-met", "budget-missed"]


def test_the_closest_size_is_the_best_of_all_sizes_searched(plan):
    fast = plan("Llama 3.1 70B", 256, tokens=1e12, deadline_s=DAY)
    cheap = plan("Llama 3.1 70B", 256, tokens=1e12, budget_usd=5)
    runs = [
        plan("Llama 3.1 70B", 256, gpus=gpus, tokens=1e12).answer.plans[0].run
        for gpus in sizes(fast)
    ]
    assert fast.answer.plans[0].run.days == pytest.approx(min(run.days for run in runs))
    assert cheap.answer.plans[0].run.usd == pytest.approx(min(run.usd for run in runs))
    assert "the fastest is" in render(fast.answer.why[0])
    assert "the cheapest is" in render(cheap.answer.why[0])
