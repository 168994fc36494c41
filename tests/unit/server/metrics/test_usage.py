"""Meters of use: labels are bounded, and what is counted only grows."""

from tenfold.model.ids import TeamId
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.server.metrics.usage import OTHERS, TEAMS_MAX, TeamGpuTime, by_team, quotas_of


def samples(family: object) -> dict[str, float]:
    return {one.labels["team"]: one.value for one in family.samples}  # pyright: ignore


def test_the_largest_teams_are_named_and_the_rest_is_summed():
    amounts = {f"t{number}": float(number) for number in range(500)}
    found = samples(by_team("tenfold_x_gpus", "Some.", amounts))
    assert len(found) == TEAMS_MAX + 1
    assert "t499" in found
    assert sum(found.values()) == sum(amounts.values())
    assert found[OTHERS] == sum(range(500 - TEAMS_MAX))


def test_gpu_time_is_added_up_from_scrape_to_scrape():
    spent = TeamGpuTime()
    assert samples(spent.counted({"red": 4.0}, 100.0)) == {"red": 0.0}
    assert samples(spent.counted({"red": 4.0}, 110.0)) == {"red": 40.0}
    assert samples(spent.counted({"blue": 2.0}, 120.0)) == {"red": 60.0, "blue": 10.0}
    assert samples(spent.counted({}, 120.0)) == {"red": 60.0, "blue": 10.0}
    assert samples(spent.counted({}, 119.0)) == {"red": 60.0, "blue": 10.0}


def test_a_counter_keeps_the_first_teams_and_never_falls():
    spent, before = TeamGpuTime(), {}
    for turn in range(40):
        held = {f"t{number}": 1.0 for number in range(turn * 5, turn * 5 + 10)}
        now = samples(spent.counted(held, float(turn)))
        assert all(now[team] >= seconds for team, seconds in before.items())
        before = now
    assert len(before) == TEAMS_MAX + 1


def test_quotas_are_of_any_type_or_of_all_types_together():
    govern = GovernanceRules(
        teams=(
            TeamRules(id=TeamId("any"), quota={"any": 8_000, "usd": 5}),
            TeamRules(id=TeamId("typed"), quota={"A100": 6_000, "H100": 2_000, "usd": 7}),
            TeamRules(id=TeamId("none")),
        )
    )
    assert quotas_of(govern) == {"any": 8.0, "typed": 8.0, "none": 0.0}
