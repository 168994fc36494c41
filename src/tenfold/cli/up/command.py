"""`tenfold up`: the control plane of this machine, from nothing to an address."""

import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from tenfold.cli.up.retention import USUAL, Care
from tenfold.cli.up.state_dir import check_nodes, first_job, held, keep_nodes, known_nodes
from tenfold.cli.up.teams import TOGETHER_OR_APART, Teams
from tenfold.client.place import HOME, home_folder
from tenfold.model.errors import InputError
from tenfold.report.reasons.render import render

if TYPE_CHECKING:
    from tenfold.cli.up.demo import Player
    from tenfold.cli.up.nodes import Ground
    from tenfold.server.runtime.serve import Started
    from tenfold.server.runtime.settings import Settings

app = App(
    name="up",
    help="Start the control plane of this machine.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

LISTEN = "127.0.0.1:7410"


Listen = Annotated[
    str, Parameter(help=f"Address and port; port 0 takes any that is free. {LISTEN}.")
]
Fleet = Annotated[Path | None, Parameter(help="A fleet file, whose nodes are all virtual here.")]
VirtualNodes = Annotated[
    int | None, Parameter(help="As many virtual nodes of 8 GPUs instead of this machine.")
]
PolicyNamed = Annotated[str | None, Parameter(help="A policy by name, or a policy file. tenfold.")]
ShadowNamed = Annotated[
    str | None, Parameter(help="A policy that is asked too, and only written down.")
]
Demo = Annotated[
    bool,
    Parameter(negative="", help="256 virtual GPUs, 15 teams, 3 weeks of work in 50 minutes."),
]
Home = Annotated[
    Path | None, Parameter(help=f"The state folder. {HOME}, or one under the user's data.")
]
Journal = Annotated[
    str,
    Parameter(
        env_var="TENFOLD_JOURNAL",
        help="URL of a database for the journal, not a file in the state folder.",
    ),
]
Certificate = Annotated[Path | None, Parameter(help="A certificate, to be asked over TLS.")]
Key = Annotated[Path | None, Parameter(help="Its key.")]
Insecure = Annotated[bool, Parameter(negative="", help="Let other machines ask without TLS.")]


@app.default
def up_command(
    *,
    listen: Listen = LISTEN,
    fleet: Fleet = None,
    virtual_nodes: VirtualNodes = None,
    policy: PolicyNamed = None,
    shadow: ShadowNamed = None,
    demo: Demo = False,
    home: Home = None,
    journal: Journal = "",
    care: Care = USUAL,
    teams: Teams = TOGETHER_OR_APART,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    insecure: Insecure = False,
) -> None:
    """Start a control plane and serve until Ctrl-C. Jobs outlive it, and are found again.

    Without --fleet and --virtual-nodes it runs jobs on this machine, as it is.
    """
    host, port = _address(listen)
    folder = home_folder(home).absolute()
    if demo:
        _check_demo(fleet, virtual_nodes, policy)
        # Its nodes and jobs are for show, and stay apart from others.
        folder = folder if home is not None else folder / "demo"
    with held(folder):
        # The server and what it stands on take most of a second to import: refusals come first.
        from tenfold.cli.up.nodes import ground  # noqa: PLC0415
        from tenfold.cli.up.shadow import shadow_of  # noqa: PLC0415
        from tenfold.server.runtime.settings import Settings  # noqa: PLC0415

        if demo:
            fleet, policy = _demo_fleet(folder), "governed"
        found = ground(fleet, policy or "tenfold", virtual_nodes, known_nodes(folder))
        settings = Settings(
            home=folder,
            nodes=found.nodes,
            policy=found.policy,
            shadow=shadow_of(shadow, found.policy, fleet),
            host=host,
            port=port,
            tls_certificate=tls_cert,
            tls_key=tls_key,
            insecure=insecure,
            journal=journal,
        )
        settings = teams.applied(care.applied(settings, is_virtual=found.is_virtual))
        _farewell(_serve(settings, found, folder, fleet if demo else None))


def _serve(settings: "Settings", found: "Ground", home: Path, played: Path | None) -> int | None:
    """Serve to the end; return how many jobs go on, None where nobody can say."""
    from tenfold.server.runtime.serve import run  # noqa: PLC0415

    check_nodes(home, found.nodes)
    for note in found.notes:
        sys.stderr.write(f"note: {note}\n")
    player = None if played is None else _player(home, played)

    def started(it: "Started") -> None:
        keep_nodes(home, found.nodes)
        _greet(it, found.says, home, [] if player is None else _demo_lines(home, found))
        if player is not None:
            player.start()

    try:
        return run(settings, started).jobs_alive
    finally:
        if player is not None:
            player.stop()


def _demo_fleet(home: Path) -> Path:
    from tenfold.cli.up.demo import demo_fleet  # noqa: PLC0415

    return demo_fleet(home)


def _player(home: Path, fleet: Path) -> "Player":
    from tenfold.cli.up.demo import Player, demo_work  # noqa: PLC0415

    player = Player(home, demo_work(fleet))
    _say(f"demo: {player.says}")
    return player


def _check_demo(fleet: Path | None, virtual_nodes: int | None, policy: str | None) -> None:
    if fleet is not None or virtual_nodes is not None or policy is not None:
        raise InputError(
            "two-fleets",
            "--demo brings its own fleet and policy",
            "leave out --fleet, --virtual-nodes and --policy, or --demo",
        )


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535 or not host:
        raise InputError(
            "wrong-address",
            f"--listen is `{listen}`, which is no address and port",
            f"write it like {LISTEN}, or [::1]:7410",
            field="--listen",
        )
    return host.removeprefix("[").removesuffix("]"), int(port)


def _demo_lines(home: Path, found: "Ground") -> list[str]:
    from tenfold.cli.up.nodes import leaf_of  # noqa: PLC0415

    leaf = leaf_of(found.nodes)
    return [
        f"kill a leaf switch: {_asking(home)}tenfold node fail '{leaf}' --cause leaf-switch",
        f"and mend it: {_asking(home)}tenfold node uncordon '{leaf}'",
    ]


def _greet(it: "Started", says: str, home: Path, more: Sequence[str]) -> None:
    if it.trouble is not None:
        sys.stderr.write(f"warning: no work is taken yet: {render(it.trouble)}\n")
        sys.stderr.write(f"hint: {it.url}/readyz tells when it is; questions are answered\n")
        sys.stderr.flush()
    _say(f"tenfold runs at {it.url}")
    _say(f"nodes: {says}")
    _say(f"state: {home}")
    _say(f"teams: {it.teams}")
    if it.admin_token is not None:
        _say(f"admin token, shown this once: {it.admin_token}")
    _say(f"try: {_asking(home)}tenfold job submit {quote(str(first_job(home)))} --follow")
    for line in more:
        _say(line)
    _say("Ctrl-C stops the control plane; jobs that run go on")


def _asking(home: Path) -> str:
    """Return what comes before a command where the folder was named on the command line alone."""
    return "" if home_folder().absolute() == home else f"{HOME}={quote(str(home))} "


def _farewell(jobs_alive: int | None) -> None:
    if jobs_alive == 1:
        _say("stopped; 1 job runs on, and `tenfold up` finds it again")
    elif jobs_alive:
        _say(f"stopped; {jobs_alive:,} jobs run on, and `tenfold up` finds them again")
    elif jobs_alive == 0:
        _say("stopped; no job was running")
    else:
        _say("stopped; jobs that were running go on, and `tenfold up` finds them again")


def _say(line: str) -> None:
    """Write a line at once: whoever starts this in the background waits for it."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
