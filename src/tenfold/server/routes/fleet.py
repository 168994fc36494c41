"""The fleet in a few figures, and who is asking."""

from litestar import Router, get

from tenfold.journal import read
from tenfold.model.api.fleet import FleetNow, Idle
from tenfold.model.api.tokens import Token
from tenfold.model.units import Millis
from tenfold.server.auth.access import Asked, needs, team_seen
from tenfold.server.auth.tokens import Role
from tenfold.server.metrics.metrics import gpus_by_state
from tenfold.server.runtime.deps import Given
from tenfold.server.schemas import iso, token_told
from tenfold.server.usage import idle_told


@get("/fleet", opt=needs(Role.viewer), sync_to_thread=True, operation_id="showFleet")
def show_fleet(request: Asked, control: Given) -> FleetNow:
    """Show nodes, GPUs and jobs by state."""
    moment = control.follower.moment()
    fleet = moment.fleet
    nodes: dict[str, int] = {}
    for state in fleet.states.values():
        nodes[state] = nodes.get(state, 0) + 1
    types: dict[str, int] = {}
    for node in fleet.nodes.values():
        types[node.accelerator] = types.get(node.accelerator, 0) + node.gpus
    jobs = read.counts(control.store, team_seen(request.user, None))
    return FleetNow(
        at=iso(moment.at_ms),
        nodes=nodes,
        gpus=gpus_by_state(fleet),
        accelerators={name: count for name, count in types.items() if count},
        jobs={state: count for state, count in jobs.items()},
        event=fleet.version,
    )


@get("/fleet/idle", opt=needs(Role.viewer), sync_to_thread=True, operation_id="showIdle")
def show_idle(request: Asked, control: Given) -> Idle:
    """Show who holds GPUs and does not use them; below `operator`, one's own team."""
    moment = control.follower.moment()
    team = team_seen(request.user, None)
    return idle_told(moment.fleet, control.usage, Millis(control.now_ms()), team)


@get("/whoami", opt=needs(Role.viewer), sync_to_thread=False, operation_id="whoAmI")
def who_am_i(request: Asked) -> Token:
    """Say whose token this is, and what it may do."""
    return token_told(request.user)


ROUTES = Router("/api/v1", route_handlers=[show_fleet, show_idle, who_am_i])
