"""The state of the fleet in a few numbers, idle GPUs, and the caller's identity."""

from litestar import Router, get

from tenfold.journal import read
from tenfold.model.api.fleet import FleetStatus, Idle
from tenfold.model.api.tokens import Token
from tenfold.model.units import Millis
from tenfold.server.auth.access import AuthedRequest, requires_role, visible_team
from tenfold.server.auth.tokens import Role
from tenfold.server.metrics.metrics import gpus_by_state
from tenfold.server.runtime.deps import ControlDep
from tenfold.server.schemas import iso, to_token
from tenfold.server.usage import to_idle


@get("/fleet", opt=requires_role(Role.viewer), sync_to_thread=True, operation_id="showFleet")
def show_fleet(request: AuthedRequest, control: ControlDep) -> FleetStatus:
    """Show nodes, GPUs and jobs by state."""
    snapshot = control.follower.snapshot()
    fleet = snapshot.fleet
    nodes: dict[str, int] = {}
    for state in fleet.states.values():
        nodes[state] = nodes.get(state, 0) + 1
    types: dict[str, int] = {}
    for node in fleet.nodes.values():
        types[node.accelerator] = types.get(node.accelerator, 0) + node.gpus
    jobs = read.counts(control.store, visible_team(request.user, None))
    return FleetStatus(
        at=iso(snapshot.at_ms),
        nodes=nodes,
        gpus=gpus_by_state(fleet),
        accelerators={name: count for name, count in types.items() if count},
        jobs={state: count for state, count in jobs.items()},
        event=fleet.version,
        policy=control.follower.policy.name,
    )


@get("/fleet/idle", opt=requires_role(Role.viewer), sync_to_thread=True, operation_id="showIdle")
def show_idle(request: AuthedRequest, control: ControlDep) -> Idle:
    """Show jobs that hold GPUs without using them; below `operator`, only your team's."""
    snapshot = control.follower.snapshot()
    team = visible_team(request.user, None)
    return to_idle(snapshot.fleet, control.usage, Millis(control.now_ms()), team)


@get("/whoami", opt=requires_role(Role.viewer), sync_to_thread=False, operation_id="whoAmI")
def who_am_i(request: AuthedRequest) -> Token:
    """Show the team and role of your token."""
    return to_token(request.user)


ROUTES = Router("/api/v1", route_handlers=[show_fleet, show_idle, who_am_i])
