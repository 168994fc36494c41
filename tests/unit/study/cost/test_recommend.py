"""Each recommendation is simulated, and what is applied saves what was estimated."""

from pathlib import Path

from msgspec.structs import replace

from price_builders import ROOT
from tenfold.compose.fleet import load_facts
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.study.cost.question import CostQuestion, cost_answer
from tenfold.study.cost.recommend import (
    CostCase,
    autoscale,
    consolidate,
    cost_case,
    recommend,
    released_when_idle,
    spot,
    spot_ratio,
    without_nodes,
)

CATALOGUE = load_facts()


def case_of(name: str, fleet: str = "fleet.toml") -> CostCase:
    folder = ROOT / "examples" / name
    return cost_case(prepare(SimFiles(fleet=folder / fleet, jobs=folder / "jobs.csv")), CATALOGUE)


STARTUP = case_of("startup-cloud", "fleet.yaml")


def test_consolidating_the_fleet_saves_what_was_estimated(tmp_path: Path):
    case = cost_case(prepare(_too_large(tmp_path)), CATALOGUE)
    found = consolidate(case)
    assert found is not None
    kept = int(found.do.split()[2])
    nodes = [node.id for node in case.prepared.request.nodes]
    applied = cost_case(without_nodes(case.prepared, nodes[kept:]), CATALOGUE)
    saved = case.report.total_usd_micros - applied.report.total_usd_micros
    assert saved == found.saves_usd_micros > 0
    assert applied.result.summary.finished == case.result.summary.finished


def _too_large(folder: Path) -> SimFiles:
    """Return ten nodes for work that fits on three."""
    fleet, jobs = folder / "fleet.toml", folder / "jobs.csv"
    fleet.write_text(
        """\
name = "large"
[[site]]
name = "home"
[[pool]]
name = "train"
accelerator = "H100"
nodes = 10
gpus_per_node = 8
price = { kind = "owned", usd_per_gpu_hour = 1.5 }
"""
    )
    rows = [f"j{at},{at * 1800},7200,8" for at in range(40)]
    jobs.write_text("\n".join(["job_id,submit_s,duration_s,gpus", *rows]) + "\n")
    return SimFiles(fleet=fleet, jobs=jobs)


def test_releasing_idle_nodes_saves_what_was_estimated_and_charges_stay():
    found = autoscale(STARTUP)
    assert found is not None
    nodes = {one.node.id: None for one in STARTUP.usage.present}
    usage, starts = released_when_idle(STARTUP.usage, nodes)
    applied = STARTUP.bill_of(usage)
    assert starts > 0
    # A micro-dollar may move between charges and idle capacity.
    assert abs(applied.charged_usd_micros - STARTUP.report.charged_usd_micros) <= 1
    assert applied.idle_usd_micros < STARTUP.report.idle_usd_micros
    saved = STARTUP.report.total_usd_micros - applied.total_usd_micros
    assert saved == found.saves_usd_micros


def test_spot_on_other_luck_saves_within_a_tenth_of_what_was_estimated():
    found = spot(STARTUP)
    assert found is not None
    work_s, full, cheap = 12 * 3600.0, 7.36, 2.63
    estimate = 1 - spot_ratio(work_s, full, cheap)[0]
    others = [1 - spot_ratio(work_s, full, cheap, seed)[0] for seed in range(1, 6)]
    mean = sum(others) / len(others)
    assert abs(mean - estimate) < 0.1 * estimate
    assert "assumptions" in found.simulated


def test_only_changes_that_save_are_shown_largest_first():
    found = recommend(STARTUP)
    saved = [one.saves_usd_micros for one in found]
    assert saved == sorted(saved, reverse=True)
    assert all(one > 0 for one in saved)
    assert all(one.simulated and one.risk for one in found)


def test_a_full_fleet_has_nothing_to_consolidate():
    case = case_of("startup-cloud", "fleet.yaml")
    busy = replace(case, report=replace(case.report, idle=()))
    assert consolidate(busy) is None


def test_a_smaller_precision_is_tried_for_a_model_that_is_served():
    folder = ROOT / "examples" / "inference-startup"
    question = CostQuestion(
        fleet=folder / "fleet.toml",
        jobs=ROOT / "examples" / "startup-cloud" / "jobs.csv",
        model="llama-3.1-70b",
        qps=20.0,
    )
    answer = cost_answer(question, with_recommendations=True)
    assert answer.recommendations is not None
    one = next(one for one in answer.recommendations if one.kind == "quantise")
    assert "same latency targets" in one.simulated


def test_cheaper_hours_are_tried_where_the_grid_has_prices_and_you_pay_for_power(tmp_path: Path):
    green = ROOT / "examples" / "green-batch"
    owned = tmp_path / "fleet.toml"
    text = (green / "fleet.toml").read_text()
    price = 'price = { kind = "owned", usd_per_gpu_hour = 1.5 }'
    owned.write_text(text.replace("[[pool]]", f"[[pool]]\n{price}"))
    for fleet, is_tried in ((green / "fleet.toml", False), (owned, True)):
        question = CostQuestion(
            fleet=fleet, jobs=green / "jobs.csv", intensity=green / "intensity.csv"
        )
        answer = cost_answer(question, with_recommendations=True)
        assert answer.recommendations is not None
        found = {one.kind: one for one in answer.recommendations}
        assert ("off-peak" in found) == is_tried
        if is_tried:
            assert "0 of 185 deadlines missed" in found["off-peak"].simulated
