"""`tenfold up`: start the control plane of this machine and serve its API."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from tenfold.cli.output import complain, print_line, print_note
from tenfold.cli.up.options import (
    DEFAULT_EXECUTOR,
    DEFAULT_GATEWAYS,
    DEFAULT_OBJECTS,
    DEFAULT_OPERATIONS,
    DEFAULT_SHARING,
    DEFAULT_TEAM_USERS,
    ExecutorOptions,
    GatewayOptions,
    ObjectStoreOptions,
    OperationOptions,
    SharingOptions,
    TeamUserOptions,
)
from tenfold.cli.up.state_dir import (
    StateDirOption,
    check_nodes,
    first_job,
    lock_state_dir,
    previous_nodes,
    save_nodes,
    stopped_text,
)
from tenfold.client.endpoint import DEMO, STATE_DIR, find_state_dir, running_state_dir
from tenfold.model.errors import InputError
from tenfold.report.policies import policy_text
from tenfold.report.reasons.render import render

if TYPE_CHECKING:
    from tenfold.cli.up.demo import DemoPlayer
    from tenfold.cli.up.inputs import ControlPlaneInputs
    from tenfold.files.sites import SiteEngine
    from tenfold.server.runtime.serve import Started
    from tenfold.server.runtime.settings import Settings

app = App(
    name="up",
    help="Start a control plane on this machine.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

LISTEN = "127.0.0.1:7410"
MEMORY_LIMITS = {
    "job": "enforced per job with cgroups",
    "process": "no control groups here, so each process of a job is limited, not the job as a "
    "whole; an allocation over the limit fails inside the process",
}

Listen = Annotated[
    str,
    Parameter(
        help="Address and port to listen on; port 0 selects a free port (default: 127.0.0.1:7410)"
    ),
]
Fleet = Annotated[
    Path | None,
    Parameter(help="Fleet file; its nodes are virtual, and their processes run on this machine"),
]
VirtualNodes = Annotated[
    int | None, Parameter(help="Use this many virtual 8-GPU nodes instead of this machine")
]
PolicyOption = Annotated[
    str | None,
    Parameter(
        help="Policy name or policy file (default: tenfold); `governed` and `slurm` use "
        "priorities, and backfill around reservations for large jobs"
    ),
]
ShadowOption = Annotated[
    str | None, Parameter(help="Second policy, whose decisions are recorded but not applied")
]
Demo = Annotated[
    bool,
    Parameter(
        negative="",
        help="Run a demo: 256 virtual GPUs, 15 teams, 3 weeks of jobs in 50 minutes",
    ),
]
Journal = Annotated[
    str,
    Parameter(
        env_var="TENFOLD_JOURNAL",
        help="Database URL of the journal (default: a file in the state directory)",
    ),
]
Certificate = Annotated[Path | None, Parameter(help="TLS certificate (PEM file)")]
Key = Annotated[Path | None, Parameter(help="Private key of the certificate (PEM file)")]
Insecure = Annotated[
    bool,
    Parameter(negative="", help="Allow access from other machines without TLS"),
]


@app.default
def up_command(
    *,
    listen: Listen = LISTEN,
    fleet: Fleet = None,
    virtual_nodes: VirtualNodes = None,
    policy: PolicyOption = None,
    shadow: ShadowOption = None,
    demo: Demo = False,
    state_dir: StateDirOption = None,
    journal: Journal = "",
    operations: OperationOptions = DEFAULT_OPERATIONS,
    teams: TeamUserOptions = DEFAULT_TEAM_USERS,
    sharing: SharingOptions = DEFAULT_SHARING,
    executor: ExecutorOptions = DEFAULT_EXECUTOR,
    gateways: GatewayOptions = DEFAULT_GATEWAYS,
    objects: ObjectStoreOptions = DEFAULT_OBJECTS,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    insecure: Insecure = False,
) -> None:
    """Start a control plane on this machine."""
    host, port = _address(listen)
    executor.check(has_fleet=fleet is not None)
    folder = find_state_dir(state_dir).absolute()
    if demo:
        _check_demo(fleet, virtual_nodes, policy)
        # Demo nodes and jobs are kept out of the real state directory.
        folder = folder if state_dir is not None else folder / DEMO
    with lock_state_dir(folder, sharing.name):
        # The server takes most of a second to import, so errors in options come first.
        from tenfold.cli.up.inputs import shadow_of  # noqa: PLC0415
        from tenfold.server.runtime.settings import Settings  # noqa: PLC0415

        if demo:
            fleet, policy = _demo_fleet(folder), "governed"
        inputs, sites = _inputs(executor, fleet, policy or "tenfold", virtual_nodes, folder)
        settings = Settings(
            state_dir=folder,
            nodes=inputs.nodes,
            policy=inputs.policy,
            sites=sites,
            shadow=shadow_of(shadow, inputs.policy, fleet),
            host=host,
            port=port,
            tls_certificate=tls_cert,
            tls_key=tls_key,
            insecure=insecure,
            journal=journal,
        )
        settings = teams.applied(operations.applied(settings, is_virtual=not inputs.is_here))
        settings = gateways.applied(executor.applied(sharing.applied(settings)))
        settings = objects.applied(settings)
        print_line(stopped_text(_serve(settings, inputs, folder, fleet if demo else None)))


def _inputs(
    executor: ExecutorOptions,
    fleet: Path | None,
    policy: str,
    virtual_nodes: int | None,
    folder: Path,
) -> "tuple[ControlPlaneInputs, tuple[SiteEngine, ...]]":
    """Return the nodes and the policy, and the engine of each site if there are several."""
    from tenfold.cli.up.inputs import (  # noqa: PLC0415 - errors in options come first
        ExternalInputs,
        control_plane_inputs,
        external_inputs,
        site_inputs,
    )

    if executor.sites is not None and fleet is not None:
        return site_inputs(executor.sites, fleet, policy, virtual_nodes)
    if executor.executor == "local":
        return control_plane_inputs(fleet, policy, virtual_nodes, previous_nodes(folder)), ()
    described = ExternalInputs(
        fleet=fleet,
        partition=executor.slurm_partition,
        ray_address=executor.ray_url,
    )
    return external_inputs(described, policy, virtual_nodes, folder), ()


def _serve(
    settings: "Settings",
    inputs: "ControlPlaneInputs",
    state_dir: Path,
    demo_fleet_file: Path | None,
) -> int | None:
    """Serve until stopped; return how many jobs keep running, None if that is unknown."""
    from tenfold.server.runtime.serve import run  # noqa: PLC0415

    check_nodes(state_dir, inputs.nodes)
    for note in inputs.notes:
        print_note(note)
    player = None if demo_fleet_file is None else _player(state_dir, demo_fleet_file)

    def started(it: "Started") -> None:
        save_nodes(state_dir, inputs.nodes)
        _print_started(
            it,
            (inputs.summary, inputs.policy.name),
            state_dir,
            [
                *([f"gateway: http://{settings.gateway}"] if settings.gateway else []),
                *([] if settings.objects is None else [f"objects: {settings.objects.url}"]),
                *([] if player is None else _demo_lines(state_dir, inputs)),
            ],
        )
        if player is not None:
            player.start()

    try:
        return run(settings, started).jobs_alive
    finally:
        if player is not None:
            player.stop()


def _demo_fleet(state_dir: Path) -> Path:
    from tenfold.cli.up.demo import demo_fleet  # noqa: PLC0415

    return demo_fleet(state_dir)


def _player(state_dir: Path, fleet: Path) -> "DemoPlayer":
    from tenfold.cli.up.demo import DemoPlayer, demo_work  # noqa: PLC0415

    player = DemoPlayer(state_dir, demo_work(fleet))
    print_line(f"demo: {player.summary}")
    return player


def _check_demo(fleet: Path | None, virtual_nodes: int | None, policy: str | None) -> None:
    if fleet is not None or virtual_nodes is not None or policy is not None:
        raise InputError(
            "two-fleets",
            "`--demo` has its own fleet and policy",
            "leave out `--fleet`, `--virtual-nodes` and `--policy`",
        )


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535 or not host:
        raise InputError(
            "wrong-address",
            f"`--listen` must be an address and port, got `{listen}`",
            f"write it like {LISTEN}, or [::1]:7410",
            field="--listen",
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _demo_lines(state_dir: Path, inputs: "ControlPlaneInputs") -> list[str]:
    from tenfold.cli.up.inputs import leaf_of  # noqa: PLC0415

    leaf, environment = leaf_of(inputs.nodes), _environment(state_dir)
    return [
        f"fail a leaf switch: {environment}tenfold node fail '{leaf}' --cause leaf-switch",
        f"bring it back: {environment}tenfold node uncordon '{leaf}'",
    ]


def _print_started(
    it: "Started", inputs: tuple[str, str], state_dir: Path, extra_lines: Sequence[str]
) -> None:
    if it.is_standby:
        leader = f"; {it.leader_url} leads" if it.leader_url else ""
        print_line(f"Tenfold is on standby at {it.url}{leader}")
        print_line(f"state: {state_dir}")
        print_line("Ctrl-C stops the control plane; running jobs continue")
        return
    summary, policy = inputs
    if it.trouble is not None:
        complain(f"warning: not ready for jobs yet: {render(it.trouble)}")
        complain(f"hint: {it.url}/readyz shows when it is; read requests already work")
    job_file = quote(str(first_job(state_dir)))
    print_line(f"Tenfold is running at {it.url}")
    print_line(f"nodes: {summary}")
    print_line(f"policy: {policy_text(policy)}")
    print_line(f"state: {state_dir}")
    print_line(f"teams: {it.teams}")
    if limited := MEMORY_LIMITS.get(it.memory_scope):
        print_line(f"memory limits: {limited}")
    if it.admin_token is not None:
        print_line(f"admin token, shown only once: {it.admin_token}")
    print_line(f"try: {_environment(state_dir)}tenfold job submit {job_file} --follow")
    for line in extra_lines:
        print_line(line)
    print_line("Ctrl-C stops the control plane; running jobs continue")


def _environment(state_dir: Path) -> str:
    """Return the variable to set before a command, if commands would not find the directory."""
    if running_state_dir().absolute() == state_dir:
        return ""
    return f"{STATE_DIR}={quote(str(state_dir))} "
