"""`tenfold status` and `tenfold whoami`: the control plane, the fleet and your jobs at a glance."""

from collections.abc import Iterator, Sequence

from cyclopts import App, Parameter
from msgspec import Struct

from tenfold.cli.arguments import Json
from tenfold.cli.job.columns import node_list
from tenfold.cli.job.listing import ListFilters, find_jobs, job_table
from tenfold.cli.job.live_render import cause_of
from tenfold.cli.output import print_json, show
from tenfold.client.client import Client
from tenfold.model.api.fleet import ControlPlane, FleetStatus
from tenfold.model.api.jobs import Job
from tenfold.model.api.objects import ObjectStore
from tenfold.model.api.tokens import Token
from tenfold.model.errors import Unreachable
from tenfold.model.job.job import JobState
from tenfold.report.alarm_rules import Thresholds
from tenfold.report.figures import count
from tenfold.report.policies import policy_text

MINE = 10
"""Own jobs in the table."""
ACTIVE: tuple[JobState, ...] = ("running", "starting", "stopping", "pending")
LEADER, STANDBY, GONE = "leader", "standby", "gone"
"""Roles of control planes that share a journal."""
SEES_ALL = ("operator", "admin")
"""Roles that see the jobs of all teams."""

status_app = App(
    name="status",
    help="Show the control plane, the fleet, the queue and your jobs.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
whoami_app = App(
    name="whoami",
    help="Show the user, team and role of your token.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


class Identity(Struct, frozen=True, kw_only=True):
    """Which control plane is used, and as whom."""

    url: str
    token: Token
    policy: str = ""


class Status(Struct, frozen=True, kw_only=True):
    """The control plane at one time."""

    at: str
    url: str
    ready: bool
    control_planes: tuple[ControlPlane, ...]
    """Those that share the journal; none if it is not shared."""
    token: Token
    fleet: FleetStatus
    objects: ObjectStore
    alarms: tuple[str, ...]
    my_jobs: dict[str, int]
    """Active jobs submitted with this token's name, by state."""
    jobs: tuple[Job, ...]
    """The first of them."""


@whoami_app.default
def whoami_command(*, as_json: Json = False) -> None:
    """Show the user, team and role of your token, and its control plane."""
    with Client() as client:
        found = Identity(url=client.url, token=client.who_am_i(), policy=client.fleet().policy)
    print_json(found) if as_json else show_identity(found)


@status_app.default
def status_command(*, as_json: Json = False) -> None:
    """Show the control plane, the fleet, the queue, alarms and your active jobs."""
    with Client() as client:
        found = read_status(client)
    print_json(found) if as_json else show_status(found)


def read_status(client: Client) -> Status:
    """Return the state of the control plane and of the caller's jobs."""
    alarms: list[str] = []
    try:
        ahead_s = client.ready().clock_ahead_s or 0.0
        is_ready = True
        if ahead_s:
            alarms.append(f"the clock of the scheduler is {ahead_s:+,.0f} s off")
    except Unreachable as problem:
        if problem.code == "control-plane-unreachable":
            raise
        is_ready = False
        if problem.code != STANDBY:
            alarms.append(f"not ready for jobs: {problem.message} [{problem.code}]")
    token, fleet, planes = client.who_am_i(), client.fleet(), client.control_planes().control_planes
    alarms += leader_alarms(planes)
    objects = client.object_store()
    if objects.is_on and not objects.url and is_ready:
        alarms.append(
            "the object store does not serve: see logs/objects.log in the state directory"
        )
    alarms += [*node_alarms(client, fleet), *queue_alarms(client, fleet)]
    mine, totals, at = dict[str, Job](), dict[JobState, int](), ""
    # In the order that a job takes, so that one which changes meanwhile is not missed.
    for state in ("pending", "starting", "running", "stopping"):
        listing = find_jobs(client, ListFilters(user=token.name, limit=MINE), state, None)
        mine.update({job.id: job for job in listing.jobs})
        at = listing.at
        if total := listing.total or len(listing.jobs):
            totals[state] = total
    first = sorted(mine.values(), key=lambda job: ACTIVE.index(job.state))[:MINE]
    return Status(
        at=at,
        url=client.url,
        ready=is_ready,
        control_planes=planes,
        token=token,
        fleet=fleet,
        objects=objects,
        alarms=tuple(alarms),
        my_jobs={state: totals[state] for state in ACTIVE if state in totals},
        jobs=tuple(first),
    )


def show_identity(found: Identity) -> None:
    """Print who is calling."""
    token = found.token
    show(f"`{token.name}`: team `{token.team}`, role {token.role}")
    show(f"token: {token.id}, expires {(token.expires_at or '')[:10]}")
    show(f"control plane: {found.url}")
    if found.policy:
        show(f"policy: {policy_text(found.policy)}")


def show_status(found: Status) -> None:
    """Print one screen: control plane, fleet, queue, alarms, own jobs."""
    token, fleet = found.token, found.fleet
    own = next((one.role for one in found.control_planes if one.url == found.url), "")
    is_standby = own == STANDBY
    state = "standby" if is_standby else "ready" if found.ready else "not ready"
    show(f"control plane: {found.url}, {state}")
    for one in found.control_planes:
        seen = f", last seen {one.seen_s:,.0f} s ago" if one.role == GONE else ""
        show(f"  {one.name}: {one.role}, {one.url}, {one.host}, version {one.version}{seen}")
    show(f"you: `{token.name}`, team `{token.team}`, role {token.role}")
    if fleet.policy:
        show(f"policy: {policy_text(fleet.policy)}")
    if found.objects.is_on:
        show(f"objects: {found.objects.url or 'not serving'}")
    show(f"nodes: {_counted(fleet.nodes, ('up', 'cordoned', 'down'))}")
    by_state = {"allocated": fleet.gpus.get("held", 0), **fleet.gpus}
    gpus = _counted(by_state, ("allocated", "free", "cordoned", "down"))
    types = ", ".join(f"{number:,} {name}" for name, number in fleet.accelerators.items())
    show(f"GPUs: {gpus}{f' ({types})' if types else ''}")
    whose = "" if token.role in SEES_ALL else f" of team `{token.team}`"
    show(f"jobs{whose}: {_counted(fleet.jobs, ACTIVE)}")
    if not found.alarms:
        show("alarms: none")
    for alarm in found.alarms:
        show(f"alarm: {alarm}")
    if not found.my_jobs:
        show("your jobs: none pending or running")
        return
    show(f"your jobs: {_counted(found.my_jobs, ACTIVE)}", "", job_table(found.jobs, found.at))
    total = sum(found.my_jobs.values())
    if total > len(found.jobs):
        show("", f"{len(found.jobs)} of {count(total, 'job')}; `tenfold job list --me` lists more")


def _counted(numbers: dict[str, int], order: tuple[str, ...]) -> str:
    parts = [f"{numbers[name]:,} {name}" for name in order if numbers.get(name)]
    return ", ".join(parts) or "none"


def leader_alarms(planes: Sequence[ControlPlane]) -> Iterator[str]:
    """Yield alarms about control planes that share a journal."""
    if not planes:
        return
    if not any(one.role == LEADER for one in planes):
        yield "no control plane leads: no job is accepted until one does"
    for one in planes:
        if one.role == GONE:
            yield f"control plane `{one.name}` ({one.host}) is gone"


def node_alarms(client: Client, fleet: FleetStatus) -> Iterator[str]:
    """Yield alarms about nodes that are down or cordoned, by cause."""
    if not any(fleet.nodes.get(state) for state in ("down", "cordoned")):
        return
    causes: dict[tuple[str, str], list[str]] = {}
    for node in client.nodes():
        if node.state != "up":
            causes.setdefault((node.state, cause_of(node)), []).append(node.id)
    for (state, cause), names in causes.items():
        why = f" ({cause})" if cause else ""
        yield f"{count(len(names), 'node')} {state}{why}: {node_list(names)}"


def queue_alarms(client: Client, fleet: FleetStatus) -> Iterator[str]:
    """Yield alarms about a long queue and about idle GPUs."""
    limits = Thresholds()
    pending = fleet.jobs.get("pending", 0)
    if pending > limits.waiting_jobs:
        yield f"{count(pending, 'job')} pending, more than {limits.waiting_jobs:,}"
    idle = client.idle()
    if idle.gpus > limits.idle_share * max(1, fleet.gpus.get("held", 0)):
        lost = f"{idle.gpu_hours_lost:,.1f} GPU-hours lost"
        yield f"{idle.gpus:g} allocated GPUs are idle ({lost}): `tenfold fleet idle`"
