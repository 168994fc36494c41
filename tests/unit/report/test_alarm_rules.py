"""Every alarm fires on bad figures and is quiet on good ones, by Prometheus's own rule tests."""

import json
from pathlib import Path

import pytest
import yaml

from engines.prometheus import promtool
from tenfold.cli.main import main
from tenfold.report.alarm_rules import Thresholds, alarms, rules_text

LIMITS = Thresholds(budgets={"vision": 100.0})
AT = "9h"
"""When the alarms are looked at; a sample comes every minute."""

# Of each alarm: series that are bad, and the same as they are when all is well.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "TenfoldTeamOverQuota": (
        # Sixteen GPUs held for nine hours are 0.86 over a week.
        {
            'tenfold_team_gpu_seconds_total{team="red"}': "0+960x540",
            'tenfold_team_quota_gpus{team="red"}': "0.5x540",
        },
        {
            'tenfold_team_gpu_seconds_total{team="red"}': "0+960x540",
            'tenfold_team_quota_gpus{team="red"}': "8x540",
        },
    ),
    "TenfoldTeamOverBudget": (
        # 144 GPU-hours by now.
        {'tenfold_team_gpu_seconds_total{team="vision"}': "0+960x540"},
        {
            # 72, and another team that used more.
            'tenfold_team_gpu_seconds_total{team="vision"}': "0+480x540",
            'tenfold_team_gpu_seconds_total{team="red"}': "0+9600x540",
        },
    ),
    "TenfoldGpusIdle": (
        {'tenfold_idle_gpus{team="red"}': "3x540", 'tenfold_gpus{state="held"}': "8x540"},
        {'tenfold_idle_gpus{team="red"}': "1x540", 'tenfold_gpus{state="held"}': "8x540"},
    ),
    "TenfoldGoodputLow": (
        {
            "tenfold_useful_gpu_seconds_total": "0+5x540",
            'tenfold_allocated_gpu_seconds_total{ended="crashed"}': "0+10x540",
        },
        {
            "tenfold_useful_gpu_seconds_total": "0+9x540",
            'tenfold_allocated_gpu_seconds_total{ended="completed"}': "0+10x540",
        },
    ),
    "TenfoldQueueWaitLong": (
        {
            'tenfold_queue_wait_seconds_bucket{le="3600"}': "0+5x540",
            'tenfold_queue_wait_seconds_bucket{le="14400"}': "0+10x540",
            'tenfold_queue_wait_seconds_bucket{le="+Inf"}': "0+10x540",
        },
        {
            'tenfold_queue_wait_seconds_bucket{le="60"}': "0+10x540",
            'tenfold_queue_wait_seconds_bucket{le="3600"}': "0+10x540",
            'tenfold_queue_wait_seconds_bucket{le="+Inf"}': "0+10x540",
        },
    ),
    "TenfoldQueueLong": (
        {"tenfold_queue_depth_jobs": "1001x540"},
        {"tenfold_queue_depth_jobs": "1000x540"},
    ),
    "TenfoldAdmissionSlow": (
        {
            'tenfold_journal_commit_seconds_bucket{le="1"}': "0+5x540",
            'tenfold_journal_commit_seconds_bucket{le="2.5"}': "0+10x540",
            'tenfold_journal_commit_seconds_bucket{le="+Inf"}': "0+10x540",
        },
        {
            'tenfold_journal_commit_seconds_bucket{le="0.01"}': "0+10x540",
            'tenfold_journal_commit_seconds_bucket{le="1"}': "0+10x540",
            'tenfold_journal_commit_seconds_bucket{le="+Inf"}': "0+10x540",
        },
    ),
    "TenfoldDown": ({"tenfold_loop_up": "0x540"}, {"tenfold_loop_up": "1x540"}),
    "TenfoldLoopRestarts": (
        {"tenfold_loop_starts_total": "1x500 2+1x40"},
        {"tenfold_loop_starts_total": "1x540"},
    ),
    "TenfoldJobsHeld": ({"tenfold_held_jobs": "0x500 1x40"}, {"tenfold_held_jobs": "0x540"}),
    "TenfoldNodesDown": (
        {'tenfold_nodes{state="down"}': "1x540", 'tenfold_nodes{state="up"}': "9x540"},
        {
            'tenfold_nodes{state="down"}': "0x540",
            'tenfold_nodes{state="up"}': "9x540",
            "tenfold_blamed_nodes": "0x540",
        },
    ),
    "TenfoldFailuresMany": (
        {"tenfold_failure_detection_seconds_count": "0+1x540"},
        {"tenfold_failure_detection_seconds_count": "0x480 0+0.1x60"},
    ),
    "TenfoldRecoverySlow": (
        {
            "tenfold_failure_recovery_seconds_sum": "0+900x540",
            "tenfold_failure_recovery_seconds_count": "0+1x540",
        },
        {
            "tenfold_failure_recovery_seconds_sum": "0+60x540",
            "tenfold_failure_recovery_seconds_count": "0+1x540",
        },
    ),
}


def _tested(tmp_path: Path, name: str, series: dict[str, str], *, fires: bool) -> tuple[int, str]:
    """Ask Prometheus for the pending and firing alarms by its own series of them."""
    rules, test = tmp_path / "rules.yml", tmp_path / "test.yml"
    # The others say nothing of this one, and to work them out takes most of the time.
    written = yaml.safe_load(rules_text(LIMITS))
    for group in written["groups"]:
        group["rules"] = [rule for rule in group["rules"] if rule["alert"] == name]
    rules.write_text(yaml.safe_dump(written))
    query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
    test.write_text(
        yaml.safe_dump(
            {
                "rule_files": [str(rules)],
                "evaluation_interval": "1m",
                "tests": [
                    {
                        "interval": "1m",
                        "input_series": [
                            {"series": one, "values": values} for one, values in series.items()
                        ],
                        "promql_expr_test": [
                            {
                                "expr": query,
                                "eval_time": AT,
                                "exp_samples": [{"labels": "{}", "value": int(fires)}],
                            }
                        ],
                    }
                ],
            }
        )
    )
    return promtool("test", "rules", str(test))


@pytest.mark.parametrize("name", CASES)
def test_an_alarm_fires_on_bad_figures(tmp_path: Path, name: str):
    status, said = _tested(tmp_path, name, CASES[name][0], fires=True)
    assert status == 0, said


@pytest.mark.parametrize("name", CASES)
def test_an_alarm_is_quiet_on_good_figures(tmp_path: Path, name: str):
    status, said = _tested(tmp_path, name, CASES[name][1], fires=False)
    assert status == 0, said


def test_a_control_plane_that_is_gone_is_told_too(tmp_path: Path):
    status, said = _tested(tmp_path, "TenfoldDown", {"up": "1x540"}, fires=True)
    assert status == 0, said


def test_every_alarm_is_tried_and_the_file_is_clean(tmp_path: Path):
    names = [one.name for group in alarms(LIMITS).values() for one in group]
    assert sorted(names) == sorted(CASES)
    (tmp_path / "rules.yml").write_text(rules_text(LIMITS))
    status, said = promtool("check", "rules", str(tmp_path / "rules.yml"))
    assert status == 0
    assert f"{len(names)} rules found" in said


def test_thresholds_are_set_on_the_command_line(capsys: pytest.CaptureFixture[str]):
    assert main(["alarms", "rules", "--idle-share", "0.35", "--budget", "a=5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "> 0.35" in found["experiments"][0]["expr"]
    assert 'team="a"' in found["budget"][1]["expr"]


def test_the_file_is_written_once_and_over_by_force(tmp_path: Path):
    out = tmp_path / "alarms.yml"
    assert main(["alarms", "rules", "--out", str(out)]) == 0
    assert out.read_text() == rules_text(Thresholds())
    assert main(["alarms", "rules", "--out", str(out)]) != 0
    assert main(["alarms", "rules", "--out", str(out), "--force"]) == 0


@pytest.mark.parametrize(
    "words",
    [["--budget", "vision"], ["--budget", "=5"], ["--wait-s", "-1"], ["--budget-days", "0"]],
)
def test_figures_that_are_none_are_refused(words: list[str]):
    assert main(["alarms", "rules", *words]) == 2
