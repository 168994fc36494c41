"""The fleet in a few figures, and who is asking."""

from litestar import Router, get
from msgspec import Struct

from tenfold.journal import read
from tenfold.model.units import Millis
from tenfold.server.access import Asked, needs, team_seen
from tenfold.server.control import Given
from tenfold.server.metrics import gpus_by_state
from tenfold.server.tokens import Role
from tenfold.server.told import TokenTold, iso, token_told
from tenfold.server.used import IdleTold, idle_told


class FleetTold(Struct, frozen=True, kw_only=True):
    """What there is and what it does."""

    at: str | None
    nodes: dict[str, int]
    """By state."""
    gpus: dict[str, int]
    """By state: held, free, cordoned, down."""
    accelerators: dict[str, int]
    """GPUs by type, whatever their state."""
    jobs: dict[str, int]
    """By state; below `operator`, those of one's own team."""
    event: int
    """The last event that is counted in."""


@get("/fleet", opt=needs(Role.viewer), sync_to_thread=True, operation_id="showFleet")
def show_fleet(request: Asked, control: Given) -> FleetTold:
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
    return FleetTold(
        at=iso(moment.at_ms),
        nodes=nodes,
        gpus=gpus_by_state(fleet),
        accelerators={name: count for name, count in types.items() if count},
        jobs={state: count for state, count in jobs.items()},
        event=fleet.version,
    )


@get("/fleet/idle", opt=needs(Role.viewer), sync_to_thread=True, operation_id="showIdle")
def show_idle(request: Asked, control: Given) -> IdleTold:
    """Show who holds GPUs and does not use them; below `operator`, one's own team."""
    moment = control.follower.moment()
    team = team_seen(request.user, None)
    return idle_told(moment.fleet, control.usage, Millis(control.now_ms()), team)


@get("/whoami", opt=needs(Role.viewer), sync_to_thread=False, operation_id="whoAmI")
def who_am_i(request: Asked) -> TokenTold:
    """Say whose token this is, and what it may do."""
    return token_told(request.user)


ROUTES = Router("/api/v1", route_handlers=[show_fleet, show_idle, who_am_i])
