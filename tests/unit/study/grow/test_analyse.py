"""The ladder on a small fleet in memory, against figures done by hand.

Its 32 nodes draw 400 kW with cooling, 8 racks of 4 draw 40 kW each, and leaves of 16 nodes on
switches of 64 ports hold 1,024.
"""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.cli.grow.bill import order_day, stages
from tenfold.cli.grow.json import Required, document
from tenfold.cli.grow.render import show_grow, then
from tenfold.compose.fleet import OpenFleet
from tenfold.model.errors import InputError
from tenfold.model.growth.growth import (
    Axis,
    Dataset,
    Facility,
    GrowSpec,
    GrowthLimits,
    LeadTime,
    Operations,
    Pace,
)
from tenfold.model.ids import TierId
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import SECOND, Bytes, Millis
from tenfold.physics.layout import lay_out
from tenfold.study.grow.analyse import analyse, order_by
from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.racks import racks_at
from tenfold.study.grow.state import state_of
from tenfold.testing.builders import job

NODES = GrowQuestion(axis="nodes")
TB = 10**12


def layer(answer: GrowAnswer, name: str) -> Row:
    return next(row for row in answer.layers if row.layer == name)


def rungs(answer: GrowAnswer) -> list[tuple[str, float | None, float | None]]:
    return [(row.layer, row.k, row.k_after) for row in answer.rows]


def unknown(answer: GrowAnswer) -> dict[str, str]:
    return {one.layer: one.needs for one in answer.unknown if one.needs}


def test_nodes_bring_racks_so_the_floor_ends_before_a_rack_gets_fuller():
    grow = GrowSpec(facility=Facility(floor_racks=16))
    answer = analyse(made.given(made.fleet(), grow), GrowQuestion(axis="nodes", to=(2.0, 4.0)))
    assert answer.first == answer.rows[0]
    assert rungs(answer) == [("floor", 2.0, 2.5), ("site-power", 2.5, None)]
    assert answer.ok_up_to is None
    assert answer.sentence == "first to break: Floor space for racks, at 2.00x nodes"


@pytest.mark.parametrize("axis", ["nodes", "all"])
def test_stating_nodes_per_rack_does_not_change_the_headline(axis: Axis):
    """Racks are nearly full today, and stay as full."""
    stated, derived = (
        analyse(made.given(made.fleet(defaulted=defaulted), GrowSpec()), GrowQuestion(axis=axis))
        for defaulted in ((), ("nodes_per_rack",))
    )
    assert stated.sentence == derived.sentence
    assert layer(stated, "rack-power").status == "constant"


def test_racks_that_are_over_today_are_said_to_be_over_whatever_grows():
    answer = analyse(made.given(made.fleet(rack_kw=35.0)), NODES)
    assert answer.sentence == (
        "already over its limit: Rack power (racks of hall at 35 kW); "
        "first to break: Site power, site hall, at 2.50x nodes"
    )
    assert any("40.0 of 35 kW in the fullest of 8 racks" in one for one in answer.assumptions)


def test_a_rack_that_is_not_full_yet_fills_up_before_another_comes():
    """Three nodes of 10 kW draw 30 of 35 kW; the fourth goes into the same rack."""
    answer = analyse(made.given(made.fleet(nodes=3, rack_kw=35.0)), NODES)
    assert layer(answer, "rack-power").k == pytest.approx(3.5 / 3, rel=1e-5)
    assert answer.rows[0].relief is not None
    assert answer.rows[0].layer == "rack-power"
    inputs = made.given(made.fleet(nodes=3, rack_kw=35.0))
    state = state_of(inputs)
    [rack] = [one for one in computed_constraints(state, "nodes") if one.layer == "rack-power"]
    fewer = next(one for one in rack.reliefs(4.0) if one.code == "more-racks")
    assert fewer.sentence == "put at most 3 nodes of train in a rack"
    then = fewer.apply(state)
    [after] = [one for one in computed_constraints(then, "nodes") if one.layer == "rack-power"]
    assert after.utilisation(4.0) <= 1
    assert racks_at(then, "nodes")(4.0) == 4
    assert racks_at(state, "nodes")(4.0) == 3


def test_spares_draw_power_and_stand_in_racks():
    """Four spares of 10 kW take 50 kW of the feed, and a rack."""
    grow = GrowSpec(facility=Facility(floor_racks=20), operations=Operations(spares=4))
    answer = analyse(made.given(made.fleet(), grow), NODES)
    assert layer(answer, "site-power").k == pytest.approx((1_000 - 50) / 400)
    assert layer(answer, "floor").k == pytest.approx(19 / 8)


def test_the_last_rack_is_filled_before_another_is_needed():
    """Ten nodes stand in three racks of four; six racks hold 24."""
    grow = GrowSpec(facility=Facility(floor_racks=6))
    answer = analyse(made.given(made.fleet(nodes=10), grow), NODES)
    assert layer(answer, "floor").k == pytest.approx(2.4)


def test_every_layer_of_the_building_breaks_where_the_figures_say():
    grow = GrowSpec(facility=Facility(floor_racks=20), limits=GrowthLimits(kw_most=600.0))
    answer = analyse(made.given(made.fleet(), grow), NODES)
    assert layer(answer, "site-power").k == pytest.approx(2.5)
    assert layer(answer, "power-budget").k == pytest.approx(1.5)
    assert layer(answer, "rack-power").status == "constant"
    assert layer(answer, "switch-ports").k == pytest.approx(32.0)
    assert layer(answer, "floor").k == pytest.approx(2.5)
    assert layer(answer, "floor").symptom == "rack positions: 20 of 20 used"


def test_a_rack_limit_that_cooling_has_is_called_cooling():
    usual = max(one.rack_kw_max for one in made.catalogue().cooling)
    answer = analyse(made.given(made.fleet(rack_kw=usual)), NODES)
    assert layer(answer, "cooling").symptom.endswith(
        f"40.0 of {usual:g} kW in the fullest of 8 racks"
    )
    assert all(row.layer != "rack-power" for row in answer.layers)


@pytest.mark.parametrize("axis", ["jobs", "nodes"])
def test_uplinks_that_slow_jobs_today_are_named_and_not_the_contention_they_cause(axis: Axis):
    opened = made.fleet()
    fabric = replace(opened.spec.fabrics[0], oversubscription=8.0, nodes_per_leaf=4)
    spec = replace(opened.spec, fabrics=(fabric,))
    traffic = Traffic(network_bytes_per_s_per_gpu=30e9, network_share=0.5)
    jobs = [replace(job(n, 64, at_s=n * 7_200, runs_s=3_600), profile="net") for n in range(60)]
    inputs = replace(
        made.given(OpenFleet(spec=spec, layout=lay_out(spec), catalogue=opened.catalogue)),
        jobs=jobs,
        starts_ms={one.id: one.submitted_ms for one in jobs},
        profiles={"net": WorkProfile(traffic=traffic)},
    )
    question = GrowQuestion(axis=axis, to=(2.0,), seeds=2, count_assumed=True)
    answer = analyse(inputs, question)
    assert answer.sentence.startswith("already over its limit: Uplink bandwidth (leaves of net); ")
    assert layer(answer, "contention").status != "breaks"


def test_free_ports_that_are_stated_count_instead_of_the_fabric():
    grow = GrowSpec(facility=Facility(ports_free=128))
    answer = analyse(made.given(made.fleet(), grow), NODES)
    assert layer(answer, "switch-ports").k == pytest.approx(1.5)


def test_a_share_of_capacity_that_must_stay_free_breaks_layers_sooner():
    grow = GrowSpec(limits=GrowthLimits(headroom_least=0.2))
    answer = analyse(made.given(made.fleet(), grow), NODES)
    assert layer(answer, "site-power").k == pytest.approx(2.0)


def test_a_layer_without_its_figure_is_unknown_and_not_ranked():
    answer = analyse(made.given(made.fleet(power_kw=None, defaulted=("nodes_per_rack",))), NODES)
    assert unknown(answer)["site-power"] == "`power_kw` for site `hall`"
    assert "nodes_per_rack" in unknown(answer)["rack-power"]
    assert "floor_racks" in unknown(answer)["floor"]
    assert [row.layer for row in answer.layers] == ["switch-ports"]
    assert answer.rows == ()
    assert answer.sentence == "none of the limits checked is reached at up to 10x nodes"


def test_layers_that_an_axis_does_not_change_say_so_and_are_never_unknown(
    capsys: pytest.CaptureFixture[str],
):
    question = GrowQuestion(axis="traffic")
    answer = analyse(made.given(made.fleet(power_kw=None)), question)
    assert list(unknown(answer)) == ["serving"]
    assert {row.status for row in answer.layers} == {"constant"}
    show_grow(answer, question)
    assert "not changed by this axis: Switch ports, Rack power\n" in capsys.readouterr().out


def test_a_layer_that_binds_already_is_first_and_says_so():
    answer = analyse(made.given(made.fleet(power_kw=200.0)), NODES)
    assert answer.first is not None
    assert (answer.first.layer, answer.first.k) == ("site-power", 0.5)
    assert (
        answer.sentence
        == "over its limit today: Site power, site hall (OK only up to 0.50x today's load)"
    )


def test_a_fleet_that_cannot_be_relieved_says_how_far_it_stands():
    """Larger jobs lose speed, and nothing that Tenfold knows of makes them lose less."""
    profile = WorkProfile(scaling=((8, 1.0), (16, 0.9), (64, 0.5)))
    jobs = [replace(job(n, 8, at_s=n * 3_600, runs_s=60), profile="net") for n in range(30)]
    starts = {one.id: one.submitted_ms for one in jobs}
    inputs = made.given(made.fleet())
    inputs = replace(inputs, jobs=jobs, starts_ms=starts, profiles={"net": profile})
    answer = analyse(inputs, GrowQuestion(axis="job-size", to=(4.0,)))
    assert [(row.layer, row.sentence) for row in answer.rows] == [
        ("step-efficiency", "no known fix")
    ]
    assert answer.ok_up_to == pytest.approx(answer.rows[0].k, rel=1e-5)


def test_data_fills_a_tier_and_shelves_relieve_it_at_the_price_of_the_tier():
    grow = GrowSpec(datasets=(Dataset(name="text", tier="fast", tb=1_600),))
    fleet = made.fleet(tiers=(made.tier(),))
    answer = analyse(made.given(fleet, grow), GrowQuestion(axis="data"))
    assert rungs(answer) == [("storage-capacity", 2.5, None)]
    assert answer.rows[0].relief is not None
    assert answer.rows[0].relief.sentence == "add 12 storage shelves to fast"
    assert answer.rows[0].usd == pytest.approx(12 * 1_000 * 10)


def test_a_cloud_store_grows_by_capacity_because_it_has_no_shelves():
    lake = replace(made.tier(), id=TierId("lake"), tier_class="cloud-object")
    grow = GrowSpec(datasets=(Dataset(name="logs", tier="lake", tb=1_600),))
    answer = analyse(made.given(made.fleet(tiers=(lake,)), grow), GrowQuestion(axis="data"))
    assert answer.rows[0].relief is not None
    said = answer.rows[0].relief.sentence
    assert said == "raise the capacity of lake to 16,000 TB (up from 4,000)"


def test_the_first_line_names_everything_that_is_over_today():
    grow = GrowSpec(facility=Facility(floor_racks=6))
    answer = analyse(made.given(made.fleet(power_kw=200.0), grow), GrowQuestion(axis="nodes"))
    assert answer.sentence == (
        "over its limit today: Site power, site hall (OK only up to 0.50x today's load); "
        "also over today: Floor space for racks"
    )


def test_a_list_of_fixes_that_is_full_names_what_breaks_next(monkeypatch: pytest.MonkeyPatch):
    inputs = made.given(made.fleet(), GrowSpec(facility=Facility(floor_racks=12)))
    question = GrowQuestion(axis="nodes", to=(10.0,))
    whole = analyse(inputs, question)
    assert len(whole.rows) > 1
    assert whole.next_label == ""
    monkeypatch.setattr("tenfold.study.grow.analyse.ROWS_MOST", 1)
    cut = analyse(inputs, question)
    assert cut.rows == whole.rows[:1]
    assert cut.next_label == whole.rows[1].label
    assert cut.ok_up_to == pytest.approx(whole.rows[1].k)
    [stage] = stages(cut)
    assert (stage.blocked_by, stage.next_label) == ("", cut.next_label)
    assert (
        f"; next: {cut.next_label} (`--apply 1` writes a fleet file with these fixes applied)"
        in then(cut)
    )


@pytest.mark.parametrize(("factor", "met"), [(2.4, True), (2.5, True), (2.6, False)])
def test_what_breaks_at_a_factor_is_ok_up_to_that_factor(factor: float, met: bool):
    grow = GrowSpec(datasets=(Dataset(name="text", tier="fast", tb=1_600),))
    question = GrowQuestion(axis="data", require=factor, allow_unknown=True)
    answer = analyse(made.given(made.fleet(tiers=(made.tier(),)), grow), question)
    assert answer.rows[0].k == 2.5
    # The read rate of the tier is not known here, but does not grow with the data.
    verdict = "met" if met else "not met"
    assert document(answer, question).required == Required(factor=factor, verdict=verdict, met=met)
    strict = document(answer, replace(question, allow_unknown=False)).required
    assert strict == Required(factor=factor, verdict=verdict, met=met)


def test_shelves_draw_power_so_relief_of_one_layer_strains_the_next():
    grow = GrowSpec(datasets=(Dataset(name="text", tier="fast", tb=3_900),))
    fleet = made.fleet(power_kw=420.0, rack_kw=500.0, tiers=(made.tier(),))
    answer = analyse(made.given(fleet, grow), GrowQuestion(axis="data", to=(10.0,)))
    [row] = answer.rows
    assert (row.layer, row.k_after) == ("storage-capacity", None)
    assert row.relief is not None
    assert row.relief.code == "shelves+site-power"
    assert row.relief.assumed_prices == ("power-kw",)
    assert (row.usd or 0) > 0


def test_a_layer_over_its_limit_that_does_not_grow_is_told_and_not_named():
    answer = analyse(made.given(made.fleet(power_kw=200.0)), GrowQuestion(axis="jobs"))
    assert answer.first is None
    assert answer.assumptions[0] == (
        "already over its limit: Site power, site hall (site power at hall: 400 of 200 kW)"
    )


def reading(number: int, *, at_s: float) -> Job:
    return replace(job(number, 8, at_s=at_s, runs_s=1_000), profile="train")


def storage(answer: GrowAnswer) -> dict[str, float | None]:
    wanted = ("storage-read", "storage-streams", "checkpoint-burst")
    return {row.layer: row.k for row in answer.layers if row.layer in wanted}


def drawn(read_gb: float) -> GrowInputs:
    """One gang of 8 after the other for 10,000 s: a load of 1/32."""
    traffic = Traffic(
        read_bytes_per_s_per_gpu=read_gb * 1e9,
        tier="fast",
        checkpoint_bytes=Bytes(400 * 10**9),
        checkpoint_every_ms=Millis(100 * SECOND),
    )
    jobs = [reading(number, at_s=number * 1_000) for number in range(11)]
    opened = made.fleet(tiers=(made.tier(),))
    return GrowInputs(fleet=opened, jobs=jobs, profiles={"train": WorkProfile(traffic=traffic)})


def test_reads_and_saves_grow_with_jobs_from_the_profiles_of_the_history():
    found = storage(analyse(drawn(1.0), GrowQuestion(axis="jobs", to=(16.0,))))
    mean = 1.1
    assert found["storage-read"] == pytest.approx(40 / (8 * mean), rel=1e-4)
    assert found["checkpoint-burst"] == pytest.approx(20 / (4 * mean), rel=1e-4)


def test_a_full_fleet_reads_no_more_however_many_jobs_arrive():
    found = storage(analyse(drawn(0.1), GrowQuestion(axis="jobs", to=(1_000.0,))))
    assert found["storage-read"] is None
    assert storage(analyse(drawn(0.1), GrowQuestion(axis="nodes")))["storage-read"] is not None


def test_an_assumed_layer_is_first_only_when_it_is_counted():
    question = GrowQuestion(axis="jobs", to=(1_000.0,))
    crowded = drawn(0.0001)
    tiers = (replace(made.tier(), streams=10),)
    spec = replace(crowded.fleet.spec, tiers=tiers)
    given = replace(crowded, fleet=replace(crowded.fleet, spec=spec))
    silent = analyse(given, question)
    loud = analyse(given, replace(question, count_assumed=True))
    assert all(row.layer != "storage-streams" for row in silent.rows)
    assert loud.first is not None
    assert loud.first.layer == "storage-streams"


def test_an_order_is_due_its_lead_time_before_the_factor_is_reached():
    lead = (LeadTime(thing="site-power", weeks_p50=8, weeks_p90=20),)
    pace = Pace(today="2026-01-01", doubles_in_months=12)
    question = GrowQuestion(axis="nodes", to=(2.0,))
    fleet = made.fleet(power_kw=560.0)
    paceless = analyse(made.given(fleet, GrowSpec(lead_times=lead)), question)
    paced = analyse(made.given(fleet, GrowSpec(lead_times=lead, pace=pace)), question)
    assert paceless.rows[0].order_by == "20 weeks before 1.4x"
    assert paced.rows[0].order_by == "2026-02-07"
    assert not paced.rows[0].late


def test_a_day_to_order_by_that_has_gone_is_marked():
    lead = (LeadTime(thing="site-power", weeks_p50=8, weeks_p90=52),)
    pace = Pace(today="2026-01-01", doubles_in_months=12)
    spec = GrowSpec(lead_times=lead, pace=pace)
    question = GrowQuestion(axis="nodes", to=(2.0,))
    [row, *_] = analyse(made.given(made.fleet(power_kw=560.0), spec), question).rows
    assert row.late
    assert order_day(row) == f"{row.order_by} (past)"


def test_without_a_lead_time_nothing_is_said_about_an_order():
    assert order_by(None, 2.0, None) == ""
    assert order_by(None, 2.0, 0.0) == ""
    assert order_by(Pace(today="2026-01-01", doubles_in_months=12), 2.0, 0.0) == "2027-01-01"


def test_the_same_question_has_the_same_answer():
    given = drawn(1.0)
    assert analyse(given, NODES) == analyse(given, NODES)


@pytest.mark.parametrize("to", [(), (0.5,), (2.0, 1e6)])
def test_factors_beyond_reason_are_refused(to: tuple[float, ...]):
    with pytest.raises(InputError) as caught:
        analyse(made.given(made.fleet()), GrowQuestion(to=to))
    assert caught.value.code == "factor-out-of-range"
