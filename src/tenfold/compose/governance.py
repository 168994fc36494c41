"""The rules of a shared fleet, from a policy and the fleet that it is to govern.

A policy file may leave to the fleet file who the teams are and what GPUs cost; here the two
are joined, and types are spelled as the fleet spells them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from tenfold.compose.fleet import (
    UNUSED_FACTS,
    FleetCheck,
    accelerator_names,
    canonical_accelerator,
    load_facts,
)
from tenfold.files.fleet.read import load_fleet
from tenfold.files.policy.fit import check_fit
from tenfold.files.policy.read import PolicyReading, read_policy_file
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.job.job import Job
from tenfold.model.policy.fleet_terms import gpu_prices, team_terms
from tenfold.model.policy.governance import ANY, USD, Amounts, GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.physics.layout import Layout, lay_out


def governance_of(policy: Policy, spec: FleetSpec, catalogue: Catalogue) -> GovernanceRules:
    """Return the rules of a policy; teams and prices that it leaves out are the fleet's."""
    stated = policy.govern or GovernanceRules()
    names = accelerator_names(pool.accelerator for pool in spec.pools)
    teams = stated.teams or tuple(team_terms(team) for team in spec.teams)
    prices = {
        canonical_accelerator(name, names, catalogue): price
        for name, price in stated.usd_micros_per_gpu_hour.items()
    }
    return replace(
        stated,
        teams=tuple(_canonical_terms(team, names, catalogue) for team in teams),
        usd_micros_per_gpu_hour={**gpu_prices(spec.pools), **prices},
    )


def check_policy(path: Path, fleet: Path | None, facts: Path | None = None) -> FleetCheck:
    """Check a policy file, and check it against a fleet if one is given."""
    reading = read_policy_file(path)
    found = list(reading.findings)
    if fleet is not None:
        catalogue = load_facts(facts, without=UNUSED_FACTS)
        layout = lay_out(load_fleet(fleet, catalogue, unknown_accelerators=True))
        found = _check_against_fleet(reading, layout, catalogue)
    return FleetCheck(
        file=str(path),
        faults=tuple(one for one in found if one.severity == "fault"),
        warnings=tuple(one for one in found if one.severity == "warning"),
    )


def _check_against_fleet(
    reading: PolicyReading, layout: Layout, catalogue: Catalogue
) -> list[Finding]:
    policy = reading.policy
    if policy is None and reading.tables is not None:
        # A file with errors is compared as far as it was read: one error must not hide the others.
        policy = Policy(name="governed", govern=reading.tables.govern)
    if policy is None or policy.name != "governed":
        return list(reading.findings)
    # With a fleet, the nodes of racks and pools are known, so overlaps are checked exactly.
    own_findings = [found for found in reading.findings if found.code != "windows-overlap"]
    fit = check_fit(governance_of(policy, layout.spec, catalogue), layout)
    if reading.policy is None:
        # Teams whose entry has an error are in the file, although they were not read.
        fit = [found for found in fit if found.code != "team-left-out"]
    return reading.located([*own_findings, *fit])


def govern_notes(govern: GovernanceRules, layout: Layout, jobs: Sequence[Job]) -> list[str]:
    """Return what the reader of a run should know about its rules."""
    notes = [found.message for found in check_fit(govern, layout)]
    named = {team.id for team in govern.teams}
    unknown_teams = dict.fromkeys(job.team for job in jobs if job.team not in named)
    if named and unknown_teams:
        teams = ", ".join(f"team `{team}`" if team else "no team" for team in unknown_teams)
        notes.append(f"jobs of {teams} have no quota in the policy")
    return notes


def _canonical_terms(team: TeamRules, names: Mapping[str, str], catalogue: Catalogue) -> TeamRules:
    def known(amounts: Amounts) -> Amounts:
        found: Amounts = {}
        for name, amount in amounts.items():
            kind = name if name in (ANY, USD) else canonical_accelerator(name, names, catalogue)
            found[kind] = found.get(kind, 0) + amount
        return found

    return replace(
        team,
        quota=known(team.quota),
        borrow=known(team.borrow),
        lend=known(team.lend),
        hours=tuple((hours, known(quota)) for hours, quota in team.hours),
    )
