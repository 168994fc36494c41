"""A fleet with its fixes applied, written and read back: it breaks where that was predicted."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from msgspec.structs import replace

from tenfold.files.fleet.read import load_fleet
from tenfold.model.growth.growth import Axis
from tenfold.study.grow.analyse import Analysis, analyse_growth
from tenfold.study.grow.fixes.apply import grow_path, grown_files
from tenfold.study.grow.inputs import GrowFiles, grow_inputs
from tenfold.study.grow.layers.compute.nodes import with_nodes
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.state import state_of

STATED_RACKS = """
[[rack]]
name = "r1"
nodes = "n[1-4]"
power_kw = 50
[[rack]]
name = "r2"
nodes = "n[5-8]"
hall = "b"
power_kw = 50
"""
LISTED = """
[[pool]]
name = "p"
accelerator = "H100"
[[node]]
name = "alpha1"
pool = "p"
rack = "x1"
[[node]]
name = "alpha2"
pool = "p"
rack = "x1"
"""
POOLS = [
    '[[pool]]\nname = "p"\naccelerator = "H100"\nnodes = 8\n',
    '[[pool]]\nname = "p"\naccelerator = "H100"\nnodes = 8\nnodes_per_rack = 4\n',
    f'[[pool]]\nname = "p"\naccelerator = "H100"\nnode_names = "n[1-8]"\n{STATED_RACKS}',
    '[[pool]]\nname = "q"\naccelerator = "B200"\nnodes = 6\nnodes_per_rack = 3\n'
    '[[pool]]\nname = "p"\naccelerator = "A100"\nnode_names = "q[01-10]"\n'
    'price = { kind = "owned", usd_per_gpu_hour = 1.5 }\n',
    LISTED,
]
FABRICS = ["", "switch_ports = 8\nspines = 2", "oversubscription = 2\nswitch_ports = 16"]


@st.composite
def fleets(draw: DrawFn) -> str:
    """Return a fleet file: some of it stated, the rest left to defaults."""
    pool = draw(st.sampled_from(POOLS))
    site = draw(st.sampled_from(["", "power_kw = 300", "power_kw = 300\nrack_kw = 60\npue = 1.3"]))
    tier = draw(st.sampled_from(["", "capacity_tb = 700", "shelves = 2\nread_gb_per_s = 9"]))
    fabric = draw(st.sampled_from(FABRICS))
    parts = ['name = "made"', f'[[tier]]\nname = "fast"\nclass = "hot"\n{tier}', pool]
    parts += [f'[[site]]\nname = "main"\n{site}'] if site else []
    parts += [f'[[fabric]]\nname = "net"\n{fabric}'] if fabric else []
    return "\n".join(parts) + "\n"


@st.composite
def grow_files(draw: DrawFn) -> str:
    """Return a grow file with limits that some fleets soon pass."""
    tables = [
        f"[facility]\nfloor_racks = {draw(st.integers(4, 9))}",
        f"[facility]\nports_free = {draw(st.integers(10, 60))}",
        f'[[dataset]]\nname = "d"\ntier = "fast"\ntb = {draw(st.integers(50, 400))}',
        "[monitoring]\nseries_per_node = 2_000\ninterval_s = 10\nsamples_per_s_most = 3_000",
        "[operations]\ncrew = 1\nrepairs_per_person_day = 1\nnodes_per_person_most = 12",
        "[limits]\nkw_most = 250\nheadroom_least = 0.1",
        f"[limits]\nusd_per_month_most = {draw(st.integers(200_000, 900_000))}",
        "[pace]\ntoday = 2026-01-31\ndoubles_in_months = 7.5",
        '[[lead_time]]\nthing = "nodes"\nweeks_p50 = 8\nweeks_p90 = 20.5',
    ]
    chosen = draw(
        st.lists(st.sampled_from(tables), min_size=1, unique_by=lambda one: one.split("\n")[0])
    )
    return "\n".join(chosen) + "\n"


def files(folder: Path, fleet: str, grow: str) -> GrowFiles:
    (folder / "fleet.toml").write_text(fleet)
    (folder / "grow.toml").write_text(grow)
    return GrowFiles(fleet=folder / "fleet.toml", grow=folder / "grow.toml")


def read_back(found: Analysis, asked_of: GrowFiles, fixes: int, question: GrowQuestion) -> Analysis:
    """Write the fleet with some fixes, and ask the same of it."""
    out = asked_of.fleet.parent / f"after-{fixes}-{asked_of.fleet.stem}.toml"
    state = found.states[fixes]
    written = grown_files(state, asked_of.fleet, asked_of.grow, out)
    out.write_text(written.fleet)
    grow_path(out).write_text(written.grow)
    again = grow_inputs(
        GrowFiles(
            fleet=out,
            grow=grow_path(out),
            jobs=asked_of.jobs,
            profiles=asked_of.profiles,
            policy=asked_of.policy,
        )
    )
    assert again.planned is not None
    assert again.planned.spec == state.spec
    return analyse_growth(again, question)


def check_predictions(given_files: GrowFiles, question: GrowQuestion) -> None:
    found = analyse_growth(grow_inputs(given_files), question)
    rows = [row for row in found.answer.rows if row.relief is not None]
    for fixes, row in enumerate(rows, 1):
        first = read_back(found, given_files, fixes, question).answer.first
        reached = None if first is None else first.k
        assert reached == pytest.approx(row.k_after), row.relief


@settings(max_examples=20, deadline=None)
@given(fleets(), grow_files(), st.sampled_from(["nodes", "data", "all"]))
def test_what_was_predicted_comes_true_when_the_files_are_read_back(
    fleet: str, grow: str, axis: Axis
):
    question = GrowQuestion(axis=axis, to=(2.0, 3.0), count_assumed=True)
    with TemporaryDirectory() as folder:
        check_predictions(files(Path(folder), fleet, grow), question)


@pytest.mark.parametrize("policy", ["fifo", "governed"])
def test_a_history_is_still_compared_with_the_fleet_that_it_ran_on(tmp_path: Path, policy: str):
    """Eight jobs at once on four nodes, in bursts: the nodes bought shorten waits as predicted."""
    lines = ["submit_s,start_s,duration_s,gpus,team"]
    for burst in range(40):
        at = burst * 14_400
        lines += [f"{at},{at + 3_600 * (n // 4)},3600,8,t{n % 2}" for n in range(6)]
    (tmp_path / "jobs.csv").write_text("\n".join(lines) + "\n")
    fleet = '[[pool]]\nname = "p"\naccelerator = "H100"\nnodes = 4\n[[site]]\nname = "s"\n'
    given_files = GrowFiles(
        fleet=files(tmp_path, fleet, "[limits]\nwait_s_p90 = 5_400\n").fleet,
        grow=tmp_path / "grow.toml",
        jobs=tmp_path / "jobs.csv",
        policy=policy,
    )
    question = GrowQuestion(axis="jobs", to=(2.0,), seeds=2)
    check_predictions(given_files, question)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("more", [1, 7])
def test_nodes_that_are_added_are_read_back_with_their_names_and_racks(
    tmp_path: Path, pool: str, more: int
):
    given_files = files(tmp_path, pool, "")
    state = state_of(grow_inputs(given_files))
    grown = replace(state, spec=with_nodes(state.spec, "p", more))
    out = tmp_path / "new.toml"
    out.write_text(grown_files(grown, given_files.fleet, given_files.grow, out).fleet)
    spec = load_fleet(out, state.inputs.fleet.catalogue)
    assert spec.nodes == state.spec.nodes + more
    assert spec == grown.spec


def test_fixes_can_be_applied_to_a_fleet_that_was_grown_before(tmp_path: Path):
    fleet = '[[pool]]\nname = "p"\naccelerator = "H100"\nnodes = 8\nnodes_per_rack = 2\n'
    given_files = files(tmp_path, fleet, "[facility]\nfloor_racks = 5\nports_free = 30\n")
    question = GrowQuestion(axis="nodes", to=(3.0,))
    found = analyse_growth(grow_inputs(given_files), question)
    once = read_back(found, given_files, 1, question)
    out = tmp_path / "after-1-fleet.toml"
    check_predictions(GrowFiles(fleet=out, grow=grow_path(out)), question)
    assert [row.layer for row in once.answer.rows] == [row.layer for row in found.answer.rows[1:]]


def test_what_fixes_cost_still_counts_against_the_budget_when_the_files_are_read_back(
    tmp_path: Path,
):
    """More power and floor space have no key that costs anything, but are paid every month."""
    fleet = (
        'name = "f"\n[[site]]\nname = "main"\npower_kw = 100\n'
        '[[pool]]\nname = "p"\naccelerator = "H100"\nnodes = 8\n'
        'price = { kind = "owned", capex_usd_per_node = 280_000 }\n'
    )
    grow = "[limits]\nusd_per_month_most = 120_000\n[facility]\nfloor_racks = 9\n"
    question = GrowQuestion(axis="nodes", to=(2.0, 4.0))
    given_files = files(tmp_path, fleet, grow)
    check_predictions(given_files, question)
    analysis = analyse_growth(grow_inputs(given_files), question)
    assert analysis.states[1].purchases
    again = read_back(analysis, given_files, 1, question)
    assert sum(again.states[0].purchases) == pytest.approx(sum(analysis.states[1].purchases))
