"""Governance in policy files: what is read, and what is wrong with it, line by line."""

from pathlib import Path

import pytest

from tenfold.files.policy.read import read_policy, read_policy_file
from tenfold.model.errors import InvalidFile
from tenfold.model.job.terms import Hours
from tenfold.model.policy.governance import USD, GovernanceRules
from tenfold.model.service.routing import InferenceLimits
from tenfold.model.units import DAY, HOUR, MINUTE

HEAD = 'name = "governed"\n'
TEAM = '[[teams]]\nid = "vision"\n'
WINDOW = '[[windows]]\nid = "w"\nnodes = ["n[1-2]"]\n'


def written(folder: Path, text: str, name: str = "policy.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def governed(folder: Path, text: str) -> GovernanceRules:
    govern = read_policy(written(folder, HEAD + text)).govern
    assert govern is not None
    return govern


def found(folder: Path, text: str) -> list[tuple[str, int | None]]:
    reading = read_policy_file(written(folder, HEAD + text))
    return [(one.code, one.line) for one in reading.findings]


def test_a_file_that_says_nothing_has_the_usual_rules(tmp_path: Path):
    assert governed(tmp_path, "") == GovernanceRules()


def test_human_units_become_milliseconds(tmp_path: Path):
    govern = governed(
        tmp_path,
        '[govern]\nfair_share = "decayed"\nhalf_life_h = 12\nreserve_after_min = 10\n'
        "min_run_min = 2.5\ndelay_min = 1\nrestart_cost_min = 3\nidle_min = 45\n"
        'off_peak = ["22:00-06:00"]\nutc_offset_h = -3.5\n',
    )
    assert (govern.fair_share, govern.half_life_ms) == ("decayed", 12 * HOUR)
    assert (govern.reserve_after_ms, govern.min_run_ms) == (10 * MINUTE, 150_000)
    assert (govern.delay_ms, govern.restart_cost_ms) == (MINUTE, 3 * MINUTE)
    assert govern.idle_ms == 45 * MINUTE
    assert govern.off_peak == (Hours(22 * HOUR, 30 * HOUR),)
    assert govern.timezone_ms == -3.5 * HOUR


def test_old_keys_are_read_with_a_warning(tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text('name = "governed"\n[govern]\npromises = 2\npromise_after_min = 10\n')
    reading = read_policy_file(path)
    assert reading.policy is not None
    assert reading.policy.govern is not None
    assert reading.policy.govern.reservations == 2
    assert reading.policy.govern.reserve_after_ms == 10 * MINUTE
    assert [(one.code, one.line) for one in reading.findings] == [
        ("renamed-key", 3),
        ("renamed-key", 4),
    ]
    assert reading.findings[0].message == "`promises` is now `reservations`"


def test_quotas_become_thousandths_and_micro_dollars(tmp_path: Path):
    [team] = governed(
        tmp_path,
        TEAM + "weight = 2\nquota = { H100 = 64, any = 96.5, usd_per_hour = 250.25 }\n"
        "borrow = { H100 = 0 }\nlend = { H100 = 8 }\nmin_run_min = 30\n"
        'residency = ["eu"]\n'
        'hours = [{ from = "20:00", to = "08:00", quota = { H100 = 80 } }]\n',
    ).teams
    assert team.quota == {"H100": 64_000, "any": 96_500, USD: 250_250_000}
    assert (team.borrow, team.lend) == ({"H100": 0}, {"H100": 8_000})
    assert team.hours == ((Hours(20 * HOUR, 32 * HOUR), {"H100": 80_000}),)
    assert (team.residency, team.min_run_ms) == (("eu",), 30 * MINUTE)


def test_limits_of_the_requests_of_a_team_are_read_and_their_errors_have_a_place(tmp_path: Path):
    stated = "inference = { requests_per_minute = 60, tokens_per_minute = 9_000, priority = 2 }\n"
    [team] = governed(tmp_path, TEAM + stated).teams
    assert team.inference == InferenceLimits(
        requests_per_minute=60, tokens_per_minute=9_000, priority=2
    )
    wrong = "inference = { requests_per_second = 1, tokens_per_minute = -1 }\n"
    assert found(tmp_path, TEAM + wrong) == [("unknown-key", 4), ("wrong-value", 4)]


def test_windows_are_counted_from_the_zero_of_the_file(tmp_path: Path):
    govern = governed(
        tmp_path,
        '[govern]\nzero = "2026-11-16T06:00Z"\nutc_offset_h = 2\n'
        + TEAM
        + WINDOW
        + 'start = "2026-11-16T10:00Z"\nhours = 2\nevery_h = 24\nteam = "vision"\n'
        + WINDOW.replace('"w"', '"local"')
        + "start = 2026-11-16T10:00:00\nhours = 1\n",
    )
    first, local = govern.windows
    assert (first.start_ms, first.end_ms, first.every_ms) == (4 * HOUR, 6 * HOUR, DAY)
    assert (first.nodes, first.team) == (("n1", "n2"), "vision")
    assert local.start_ms == 2 * HOUR, "a time without a zone is in that of the file"
    assert govern.timezone_ms == 8 * HOUR, "time 0 is eight o'clock there"


def test_yaml_says_the_same(tmp_path: Path):
    text = "name: governed\nteams:\n  - id: a\n    quota: {H100: 8, any: 9}\n"
    govern = read_policy(written(tmp_path, text, "p.yaml")).govern
    assert govern is not None
    assert govern.teams[0].quota == {"H100": 8_000, "any": 9_000}


def test_prices_are_by_type(tmp_path: Path):
    govern = governed(tmp_path, "[prices]\nusd_per_gpu_hour = { H100 = 2.5 }\n")
    assert govern.usd_micros_per_gpu_hour == {"H100": 2_500_000}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("[govern]\nreservations = -1\n", "wrong-value", 3),
        ("[govern]\ncolour = 1\n", "unknown-key", 3),
        ('[govern]\noff_peak = ["late"]\n', "bad-hours", 3),
        ('[govern]\noff_peak = ["22:00-26:00"]\n', "bad-hours", 3),
        ('[govern]\nzero = "soon"\n', "bad-moment", 3),
        ("govern = 3\n", "wrong-value", 2),
        ("[teams]\nid = 'a'\n", "wrong-value", 2),
        (TEAM + "quota = 8\n", "wrong-value", 4),
        (TEAM + "quota = { H100 = -8 }\n", "wrong-value", 4),
        (TEAM + 'quota = { H100 = "all" }\n', "wrong-value", 4),
        (TEAM + "quota = { H100 = true }\n", "wrong-value", 4),
        (TEAM + "quota = { H100 = nan }\n", "wrong-value", 4),
        (TEAM + "quota = { usd = 5 }\n", "unknown-key", 4),
        (TEAM + "quota = { gpu = 32 }\n", "unknown-key", 4),
        (TEAM + "borrow = { GPUs = 32 }\n", "unknown-key", 4),
        (TEAM + "weight = 0\n", "wrong-value", 4),
        (TEAM + 'parent = "nobody"\n', "unknown-team", 4),
        (TEAM + 'parent = "vision"\n', "cycle", 4),
        (TEAM + TEAM, "duplicate-name", 5),
        (TEAM + "quota = { H100 = 4 }\nlend = { H100 = 5 }\n", "lend-over-quota", 5),
        (TEAM + "lend = { H100 = 5 }\n", "lend-over-quota", 4),
        (TEAM + 'hours = [{ from = "8", to = "9:00", quota = {} }]\n', "bad-hours", 4),
        (TEAM + 'hours = [{ from = "08:00", to = "08:00", quota = {} }]\n', "bad-hours", 4),
        (TEAM + 'hours = [{ from = "08:00", quota = {} }]\n', "missing-key", 4),
        (WINDOW + "start_h = 1\nhours = -1\n", "window-ends-first", 6),
        (WINDOW + "start_h = 1\nhours = 5\nevery_h = 4\n", "window-over-itself", 7),
        (WINDOW + "hours = 5\n", "window-start", 2),
        (WINDOW + 'start_h = 1\nhours = 5\nteam = "x"\n' + TEAM, "unknown-team", 7),
        (WINDOW.replace("1-2]", "1-") + "start_h = 1\nhours = 5\n", "bad-host-list", 4),
        ('[[windows]]\nid = "w"\nnodes = []\nstart_h = 1\nhours = 1\n', "wrong-value", 4),
        ("[prices]\nusd_per_gpu_hour = { H100 = -1 }\n", "wrong-value", 3),
    ],
)
def test_each_fault_is_named_with_its_line(tmp_path: Path, text: str, code: str, line: int):
    assert found(tmp_path, text) == [(code, line)]
    with pytest.raises(InvalidFile):
        read_policy(tmp_path / "policy.toml")


def test_all_faults_come_at_once_and_in_order(tmp_path: Path):
    text = (
        '[govern]\nreservations = -1\noff_peak = ["late"]\n'
        '[[teams]]\nid = "a"\nparent = "b"\nquota = { H100 = -1 }\n'
        '[[teams]]\nid = "b"\nparent = "a"\nlend = { H100 = 1 }\n'
    )
    codes = ["wrong-value", "bad-hours", "cycle", "wrong-value", "cycle", "lend-over-quota"]
    assert [code for code, _ in found(tmp_path, text)] == codes


def test_hours_of_one_team_that_overlap_are_a_fault_and_those_that_meet_are_not(tmp_path: Path):
    hours = 'hours = [{{ from = "08:00", to = "20:00", quota = {{}} }}, {} ]\n'
    met = hours.format('{ from = "20:00", to = "08:00", quota = {} }')
    over = hours.format('{ from = "19:59", to = "07:00", quota = {} }')
    assert found(tmp_path, TEAM + met) == []
    assert found(tmp_path, TEAM + over) == [("hours-overlap", 4)]


def test_children_that_are_sure_of_more_than_their_parent_are_a_warning(tmp_path: Path):
    def text(quota: int, more: str = "") -> str:
        return (
            TEAM
            + f"quota = {{ H100 = {quota} }}\n"
            + "".join(
                f'[[teams]]\nid = "{name}"\nparent = "vision"\nquota = {{ H100 = 4 }}\n{more}'
                for name in ("a", "b")
            )
        )

    night = 'hours = [{ from = "22:00", to = "06:00", quota = { H100 = 6 } }]\n'
    assert found(tmp_path, text(8)) == []
    assert found(tmp_path, text(7)) == [("quota-over-parent", 4)]
    assert found(tmp_path, text(8, night)) == [("quota-over-parent", 4)]
    assert found(tmp_path, text(12, night)) == []
    assert read_policy(tmp_path / "policy.toml").govern is not None


def test_a_parent_that_names_no_quota_is_as_sure_as_its_teams(tmp_path: Path):
    text = TEAM + '[[teams]]\nid = "a"\nparent = "vision"\nquota = { H100 = 4 }\n'
    assert found(tmp_path, text) == []


def test_maintenance_and_a_reservation_on_the_same_nodes_are_a_warning(tmp_path: Path):
    kept = WINDOW + "start_h = 1\nhours = 4\nevery_h = 24\n"
    other = '[[windows]]\nid = "demo"\nnodes = ["n2"]\nteam = "vision"\nhours = 2\n'
    at = TEAM + kept + other
    assert found(tmp_path, at + "start_h = 51\n") == [("windows-overlap", 10)]
    assert found(tmp_path, at + "start_h = 53\n") == []
    assert found(tmp_path, at.replace('["n2"]', '["n3"]') + "start_h = 51\n") == []


def test_a_date_without_a_zero_is_a_warning(tmp_path: Path):
    text = WINDOW + "start = 2026-11-20T08:00:00Z\nhours = 1\n"
    assert found(tmp_path, text) == [("date-without-zero", 5)]


def test_rules_under_another_policy_are_checked_and_not_obeyed(tmp_path: Path):
    path = written(tmp_path, 'name = "fair"\n' + TEAM)
    assert read_policy(path).govern is None
    written(tmp_path, 'name = "fair"\n' + TEAM + TEAM)
    with pytest.raises(InvalidFile, match="team 2 and team 1 have the same id"):
        read_policy(path)
