"""A governed policy joined with a fleet that is not read for it: in a shadow, or in a record.

A record names nodes, not teams. What a policy leaves out is then taken from the fleet file
where one is given, or else from the policy that was recorded.
"""

from pathlib import Path

from msgspec.structs import replace

from tenfold.compose.fleet import UNUSED_FACTS, load_facts
from tenfold.compose.governance import governance_of
from tenfold.files.fleet.read import load_fleet
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.policy.fleet_terms import site_costs
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy

NO_FLEET = FleetSpec(name="", sites=(), pools=())
NO_TEAMS_NOTE = (
    "no teams are defined: all jobs count equally and have no quota (define teams with --fleet)"
)


def policy_for_fleet(policy: Policy, spec: FleetSpec, facts: Path | None = None) -> Policy:
    """Return a policy with the teams and prices of a fleet where it is governed and has none."""
    if spec.pools:
        policy = replace(policy, sites=site_costs(spec))
    if policy.name != "governed":
        return policy
    catalogue = load_facts(facts, without=UNUSED_FACTS)
    return replace(policy, govern=governance_of(policy, spec, catalogue))


def policy_for_record(
    policy: Policy, recorded: Policy, fleet: Path | None = None, facts: Path | None = None
) -> tuple[Policy, list[str]]:
    """Return a policy for a recorded run, and what its reader should know."""
    policy = replace(policy, sites=recorded.sites)
    if policy.name != "governed":
        return policy, []
    if fleet is not None:
        catalogue = load_facts(facts, without=UNUSED_FACTS)
        spec = load_fleet(fleet, catalogue, unknown_accelerators=True)
        return policy_for_fleet(policy, spec, facts), []
    stated, recorded_govern = (
        policy.govern or GovernanceRules(),
        recorded.govern or GovernanceRules(),
    )
    if not stated.teams:
        stated = replace(stated, teams=recorded_govern.teams)
    prices = {**recorded_govern.usd_micros_per_gpu_hour, **stated.usd_micros_per_gpu_hour}
    stated = replace(stated, usd_micros_per_gpu_hour=prices)
    joined = policy_for_fleet(replace(policy, govern=stated), NO_FLEET, facts)
    return joined, [] if stated.teams else [NO_TEAMS_NOTE]
