"""Every relief of figures, applied: the layer then stands the target, as its own law says."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from tenfold.compose.fleet import OpenFleet
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fleet.spec import Fabric, Price, SiteLink
from tenfold.model.growth.growth import (
    Axis,
    Controller,
    GrowSpec,
    GrowthLimits,
    Monitoring,
    Operations,
    ServiceLoad,
)
from tenfold.model.growth.measured import UsagePoint
from tenfold.model.ids import SiteId
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.model.units import BytesPerSecond, UsdMicros
from tenfold.physics.layout import lay_out
from tenfold.study.grow.constraint_set import computed_constraints
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.layers.compute.nodes import more_nodes
from tenfold.study.grow.relief import Relief, round_up_digits, round_up_to
from tenfold.study.grow.state import State, state_of
from tenfold.testing.builders import job

TARGET = 4.0
NODE_USD = (8 * 2 + 10 * 1.25 * 0.1) * 730
"""A node a month: eight GPUs at $2, and 10 kW at a PUE of 1.25 and $0.10/kWh."""
FAULTS = FailureLaw(
    name="own", faults_per_1000_node_days=20.0, repair_h_median=12.0, repair_h_mean=24.0
)


def constraint_of(state: State, axis: Axis, layer: str, resource: str = "") -> Constraint:
    return next(
        constraint
        for constraint in computed_constraints(state, axis)
        if constraint.layer == layer and resource in constraint.resource and not constraint.needs
    )


def reliefs(
    inputs: GrowInputs, axis: Axis, layer: str, resource: str = ""
) -> dict[str, tuple[Relief, State]]:
    """Apply every relief of a layer that breaks before the target, and see that it then stands."""
    state = state_of(inputs)
    constraint = constraint_of(state, axis, layer, resource)
    assert constraint.utilisation(TARGET) > 1
    found: dict[str, tuple[Relief, State]] = {}
    for relief in constraint.reliefs(TARGET):
        if relief.code == "spares-today":
            continue
        then = relief.apply(state)
        after = [one for one in computed_constraints(then, axis) if one.layer == layer]
        ours = [one for one in after if one.key == constraint.key] or after
        assert ours, f"{relief.code} leaves no law of {layer}"
        assert all(not one.needs for one in ours), relief.code
        assert max(one.utilisation(TARGET) for one in ours) <= 1 + 1e-9, relief.code
        found[relief.code] = (relief, then)
    return found


def asked(grow: GrowSpec, opened: OpenFleet | None = None) -> GrowInputs:
    return made.given(opened or made.fleet(), grow)


def work(count: int = 101, every_s: int = 10, *, gpus: int = 1, runs_s: int = 60) -> list[Job]:
    return [job(at, gpus, at_s=at * every_s, runs_s=runs_s) for at in range(count)]


def priced(opened: OpenFleet) -> OpenFleet:
    price = Price(kind="owned", usd_micros_per_hour=UsdMicros(2_000_000), basis="stated")
    pools = tuple(replace(pool, price=price) for pool in opened.spec.pools)
    return replace(opened, spec=replace(opened.spec, pools=pools))


def test_kueue_tries_more_queues_in_a_cycle_for_nothing():
    # 0.101 jobs a second against 9 cycles a minute.
    inputs = asked(GrowSpec(controllers=(Controller(kind="kueue", cycles_per_min=9.0),)))
    found = reliefs(replace(inputs, jobs=work()), "jobs", "admission")
    relief, then = found["setting"]
    assert relief.sentence == "schedule from 3 queues per cohort in each cycle (currently 1)"
    assert relief.usd_per_month == 0
    assert then.grow.controllers[0].heads_per_cycle == 3
    assert found["parted"][0].usd_per_month is None


def test_slurm_starts_more_in_a_pass():
    slurm = SlurmPolicy(jobs_started_max=1, interval_min_us=8_000_000, scheduler="builtin")
    policy = Policy(name="slurm", slurm=slurm)
    inputs = replace(asked(GrowSpec()), jobs=work(), policy=policy)
    relief, then = reliefs(inputs, "jobs", "admission")["setting"]
    assert relief.sentence == "set `sched_max_job_start=4` in slurm.conf (up from 1)"
    assert then.policy.slurm is not None
    assert then.policy.slurm.jobs_started_max == 4


def test_a_controller_that_is_slow_itself_is_parted_and_no_setting_helps():
    slow = Controller(kind="kueue", cycles_per_min=600.0, cost_ms_per_job=5_000.0)
    found = reliefs(replace(asked(GrowSpec(controllers=(slow,))), jobs=work()), "jobs", "admission")
    assert list(found) == ["parted"]
    assert found["parted"][0].sentence.endswith("across 3 controllers (up from 1)")


def test_the_own_loop_takes_over_where_its_cost_is_stated():
    controllers = (
        Controller(kind="slurm", cost_ms_per_job=9_000.0),
        Controller(kind="tenfold", cost_ms_per_job=1.0),
    )
    inputs = replace(asked(GrowSpec(controllers=controllers)), jobs=work())
    relief, then = reliefs(inputs, "jobs", "admission", "slurm")["own-loop"]
    assert [one.kind for one in then.grow.controllers] == ["tenfold"]
    assert relief.usd_per_month == 0


def test_nodes_carry_the_work_at_the_price_of_their_pool():
    # 32 nodes of 8 GPUs, half of them in use.
    jobs = work(201, 30, gpus=8, runs_s=480)
    inputs = replace(made.given(priced(made.fleet())), jobs=jobs)
    relief, then = reliefs(inputs, "jobs", "compute")["nodes"]
    more = then.spec.nodes - 32
    assert 30 <= more <= 36
    assert relief.usd_per_month == pytest.approx(more * NODE_USD)


def test_coarser_samples_are_free_and_say_what_they_cost():
    monitoring = Monitoring(series_per_node=1_500, interval_s=15, samples_per_s_most=5_000)
    found = reliefs(asked(GrowSpec(monitoring=monitoring)), "nodes", "monitoring", "samples")
    assert sorted(found) == ["interval", "servers"]
    relief, then = found["interval"]
    assert relief.sentence == "scrape every 39 s instead of 15 s (shorter events are missed)"
    assert (relief.usd_per_month, then.grow.monitoring.interval_s) == (0, 39)
    assert found["servers"][0].sentence.startswith("split the nodes across 3 servers")


def test_a_store_of_samples_is_relieved_by_days_interval_or_room():
    monitoring = Monitoring(series_per_node=1_500, interval_s=15, retention_days=90, store_tb=0.1)
    found = reliefs(asked(GrowSpec(monitoring=monitoring)), "nodes", "monitoring", "store")
    assert sorted(found) == ["interval", "retention", "store"]
    assert found["retention"][0].sentence == "keep samples for 53 days instead of 90"
    store = found["store"][0]
    assert store.assumed == ("storage-tb",)
    assert store.usd_per_month == pytest.approx(0.07 * 3.6)


def test_spares_cost_what_nodes_do():
    inputs = asked(GrowSpec(operations=Operations(spares=2)), priced(made.fleet()))
    relief, then = reliefs(replace(inputs, failures=FAULTS), "nodes", "spares")["spares"]
    more = (then.grow.operations.spares or 0) - 2
    assert more > 0
    assert relief.usd_per_month == pytest.approx(more * NODE_USD)
    one_less = replace(then, grow=replace(then.grow, operations=Operations(spares=2 + more - 1)))
    assert constraint_of(one_less, "nodes", "spares").utilisation(TARGET) > 1


@pytest.mark.parametrize("resource", ["repairs", "nodes a person"])
def test_people_cost_what_is_stated_or_an_assumed_wage(resource: str):
    crew = Operations(crew=0.5, repairs_per_person_day=1.0, nodes_per_person_most=100.0)
    inputs = replace(asked(GrowSpec(operations=crew)), failures=FAULTS)
    relief, _ = reliefs(inputs, "nodes", "operations", resource)["people"]
    hired = int(relief.sentence.split()[1])
    assert (relief.usd_per_month, relief.assumed) == (hired * 11_500, ("technician",))
    assert relief.usd_range == (hired * 6_200, hired * 15_800)
    paid = replace(crew, usd_per_person_month=9_000.0)
    inputs = replace(asked(GrowSpec(operations=paid)), failures=FAULTS)
    relief, _ = reliefs(inputs, "nodes", "operations", resource)["people"]
    people = int(relief.sentence.split()[1])
    assert relief.usd_per_month == people * 9_000


def test_a_budget_of_dollars_or_of_power_is_named():
    inputs = asked(
        GrowSpec(limits=GrowthLimits(usd_per_month_most=500_000, kw_most=600.0)),
        priced(made.fleet()),
    )
    relief, then = reliefs(inputs, "nodes", "money")["budget"]
    wanted = then.grow.limits.usd_per_month_most or 0
    assert wanted % 1_000 == 0
    assert relief.usd_per_month == 0
    relief, _ = reliefs(inputs, "nodes", "power-budget")["power-budget"]
    assert relief.sentence == "raise the total power limit to 1,600 kW (up from 600)"


def test_a_pool_that_serves_gets_nodes_and_a_service_replicas():
    service = ServiceLoad(
        name="chat",
        model="Llama 3.1 70B",
        qps=60.0,
        input_tokens=1_500,
        output_tokens=300,
        ttft_s=2.0,
        tpot_s=0.05,
        replicas_most=4,
    )
    inputs = asked(GrowSpec(services=(service,)), priced(made.fleet(nodes=4)))
    relief, then = reliefs(inputs, "traffic", "serving", "pool")["nodes"]
    assert relief.sentence.endswith("to pool train")
    assert then.spec.pools[0].nodes > 4
    relief, then = reliefs(inputs, "traffic", "serving", "service")["replicas"]
    assert relief.usd_per_month == 0
    assert (then.grow.services[0].replicas_most or 0) > 4


def test_only_the_pool_that_is_full_grows_and_no_name_is_given_twice():
    opened = made.fleet(nodes=4)
    second = replace(opened.spec.pools[0], id="other", nodes=2, node_names="n[5-6]")
    spec = replace(opened.spec, pools=(*opened.spec.pools, second))
    inputs = made.given(OpenFleet(spec=spec, layout=lay_out(spec), catalogue=made.catalogue()))
    state = state_of(inputs)
    [relief] = more_nodes(state, 2.3, "train")
    then = relief.apply(state)
    assert relief.sentence == "add 6 nodes to pool train"
    assert then.spec.pools[1] == second
    assert then.spec.pools[0].node_names == "n[1-4,7-12]"
    assert then.spec.nodes == 12


def test_what_was_measured_is_relieved_by_so_many_times_its_capacity():
    points = [
        UsagePoint(layer="gateway", resource="router CPU", factor=k, usage=2.0 * k, limit=4.4)
        for k in (1.0, 2.0)
    ]
    inputs = replace(made.given(made.fleet()), measured=points)
    relief, _ = reliefs(inputs, "traffic", "gateway")["capacity"]
    assert relief.sentence == "raise router CPU to 8.36 (up from 4.4)"
    assert relief.usd_per_month is None


def test_what_was_measured_along_one_axis_is_no_law_along_another():
    def point(factor: float, axis: Axis) -> UsagePoint:
        return UsagePoint(
            layer="gateway", resource="cpu", factor=factor, usage=factor, limit=3.0, axis=axis
        )

    points = [point(1.0, "jobs"), point(2.0, "jobs"), point(1.0, "data")]
    state = state_of(replace(made.given(made.fleet()), measured=points))
    assert not [
        constraint
        for constraint in computed_constraints(state, "traffic")
        if constraint.layer == "gateway"
    ]
    assert constraint_of(state, "jobs", "gateway").resource == "cpu"
    named = [
        constraint.resource
        for constraint in computed_constraints(state, "all")
        if constraint.layer == "gateway"
    ]
    assert named == ["cpu along jobs", "cpu along data"]


def crossing(ratio: float, spines: int | None = None) -> GrowInputs:
    """Four leaves of 16 nodes, and gangs of two leaves that send half of the time."""
    opened = made.fleet(nodes=64)
    fabric: Fabric = replace(opened.spec.fabrics[0], oversubscription=ratio, spines=spines)
    spec = replace(opened.spec, fabrics=(fabric,))
    traffic = Traffic(network_bytes_per_s_per_gpu=20e9, network_share=0.5)
    jobs = [replace(one, profile="net") for one in work(40, 3_600, gpus=256, runs_s=3_600)]
    return GrowInputs(
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=made.catalogue()),
        jobs=jobs,
        profiles={"net": WorkProfile(traffic=traffic)},
    )


def test_uplinks_that_do_not_block_carry_larger_gangs():
    relief, then = reliefs(crossing(4.0), "job-size", "fabric-uplinks")["uplinks"]
    assert relief.sentence.startswith("lower the oversubscription of leaf uplinks in net ")
    assert relief.sentence.endswith("(down from 4:1)")
    assert then.spec.fabrics[0].oversubscription < 4


def test_spines_are_added_until_they_carry_what_runs():
    relief, then = reliefs(crossing(1.0, spines=2), "nodes", "fabric-spine")["spines"]
    assert (then.spec.fabrics[0].spines or 0) > 2
    assert relief.sentence.endswith("in total)")


def test_a_link_between_sites_is_made_wider():
    """Jobs of the hall read a tier that stands in another town, over one link."""
    opened = made.fleet(tiers=(replace(made.tier(), site=SiteId("town")),))
    town = replace(opened.spec.sites[0], id=SiteId("town"))
    link = SiteLink(
        a=SiteId("hall"),
        b=SiteId("town"),
        bandwidth=BytesPerSecond(2 * 10**9),
        latency_us=500.0,
        egress_usd_micros_per_gb=UsdMicros(0),
    )
    spec = replace(opened.spec, sites=(*opened.spec.sites, town), links=(link,))
    traffic = Traffic(read_bytes_per_s_per_gpu=10e6, tier="fast")
    inputs = GrowInputs(
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=made.catalogue()),
        jobs=[replace(one, profile="net") for one in work(40, 3_600, gpus=128, runs_s=3_600)],
        profiles={"net": WorkProfile(traffic=traffic)},
    )
    relief, then = reliefs(inputs, "nodes", "site-links")["link"]
    assert then.spec.links[0].bandwidth > link.bandwidth
    assert relief.sentence.endswith("(up from 16 Gbit/s)")


@pytest.mark.parametrize(
    ("multiple", "said"), [(1.81, 1.9), (2.0, 2.0), (12.3, 13.0), (101.0, 110.0)]
)
def test_a_dose_is_rounded_up_to_two_digits(multiple: float, said: float):
    assert round_up_digits(multiple) == pytest.approx(said)
    assert round_up_to(multiple, 10) % 10 == 0
