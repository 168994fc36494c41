"""`tenfold gateway`: run the inference gateway, and check routing files."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Json
from tenfold.cli.output import print_json, print_line, show
from tenfold.model.errors import InputError, Refused
from tenfold.model.service.routing import RoutingState, models_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.gateway.serve.sources import Source

app = App(
    name="gateway",
    help="Route requests to service replicas: OpenAI-compatible API, fair sharing, rate limits.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
LISTEN = "127.0.0.1:7480"
ADMIN = "127.0.0.1:7481"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MIB = 1 << 20


@app.command(name="run")
def run_command(
    *,
    routing: Annotated[
        Path | None, Parameter(help="Routing file; reloaded when it changes")
    ] = None,
    control_plane: Annotated[
        str, Parameter(help="URL of the control plane to get the routing state from")
    ] = "",
    listen: Annotated[
        str,
        Parameter(
            help="Address and port for clients; port 0 selects a free port"
            " (default: 127.0.0.1:7480)"
        ),
    ] = LISTEN,
    admin: Annotated[
        str,
        Parameter(
            help="Address and port of the admin API: load, metrics and health"
            " (default: 127.0.0.1:7481)"
        ),
    ] = ADMIN,
    keys_file: Annotated[
        Path | None, Parameter(help="File with API keys of replicas and other endpoints, by name")
    ] = None,
    drain_s: Annotated[
        float,
        Parameter(
            name="--drain-timeout-s",
            help="Seconds to let in-flight requests finish after SIGTERM (default: 60)",
            validator=validators.Number(gte=0),
        ),
    ] = 60.0,
    body_mib: Annotated[
        int,
        Parameter(
            name="--body-max-mib",
            help="Largest request body in MiB (default: 32)",
            validator=validators.Number(gte=1, lte=1_024),
        ),
    ] = 32,
    tls_cert: Annotated[Path | None, Parameter(help="TLS certificate (PEM file)")] = None,
    tls_key: Annotated[
        Path | None, Parameter(help="Private key of the certificate (PEM file)")
    ] = None,
    insecure: Annotated[
        bool, Parameter(negative="", help="Allow access from other machines without TLS")
    ] = False,
    json_log: Annotated[bool, Parameter(negative="", help="Write the log as JSON lines")] = False,
    data_plane: Annotated[
        Literal["python", "haproxy"],
        Parameter(
            help="Forward requests in this process, or use HAProxy for those that need no routing "
            "decision, which takes less CPU (default: python)"
        ),
    ] = "python",
) -> None:
    """Run a gateway until Ctrl-C or SIGTERM. In-flight requests are completed first.

    With --control-plane, the token comes from the same place as for other commands: from
    TENFOLD_TOKEN, or from the control plane that runs on this machine. It requires the operator
    role.
    """
    if (routing is None) == (not control_plane):
        raise InputError(
            "no-routing",
            "no routing source given" if routing is None else "two routing sources given",
            "use either --routing FILE or --control-plane URL",
        )
    if (tls_cert is None) != (tls_key is None):
        raise InputError(
            "tls-half",
            "TLS needs a certificate and its key",
            "set both `--tls-cert` and `--tls-key`",
        )
    addresses = _address(listen, "--listen"), _address(admin, "--admin")
    _check_exposure(addresses, has_tls=tls_cert is not None, insecure=insecure)
    _check_installed()
    from tenfold.files.routing import read_keys, read_routing  # noqa: PLC0415
    from tenfold.gateway.serve.log import log_to_stderr  # noqa: PLC0415
    from tenfold.gateway.serve.process import GatewaySettings, run_gateway  # noqa: PLC0415
    from tenfold.server.metrics.traces import traces_from_environment  # noqa: PLC0415

    if routing is not None:
        # Its errors are better shown now than in a log.
        read_routing(routing)
    settings = GatewaySettings(
        listen=addresses[0],
        admin=addresses[1],
        keys={} if keys_file is None else read_keys(keys_file),
        drain_s=drain_s,
        body_bytes_max=body_mib * MIB,
        tls_cert=tls_cert,
        tls_key=tls_key,
        has_haproxy=data_plane == "haproxy",
        spans=traces_from_environment("tenfold-gateway").requests(),
    )
    log_to_stderr(as_json=json_log)
    run_gateway(settings, _source(routing, control_plane), _print_started)


@app.command(name="check")
def check_command(
    routing: Annotated[Path, Parameter(help="Routing file")], *, as_json: Json = False
) -> None:
    """Check a routing file and show its services. All errors are listed, with their lines."""
    from tenfold.files.routing import read_routing  # noqa: PLC0415

    state = read_routing(routing)
    if as_json:
        print_json(_summary(state))
    else:
        _show_summary(state)


def _source(routing: Path | None, control_plane: str) -> "Callable[[], Source]":
    from tenfold.client.endpoint import find_endpoint  # noqa: PLC0415
    from tenfold.gateway.serve.sources import Address, ControlPlane, RoutingFile  # noqa: PLC0415

    if routing is not None:
        return lambda: RoutingFile(routing)
    find_endpoint(control_plane)

    def address() -> Address:
        endpoint = find_endpoint(control_plane)
        return Address(endpoint.url, endpoint.token)

    return lambda: ControlPlane(address)


def _print_started(front: str, admin: str) -> None:
    print_line(f"gateway: {front}")
    print_line(f"admin: {admin}")


def _address(text: str, option: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise InputError(
            "wrong-address",
            f"`{option}` must be an address and port, got `{text}`",
            f"write it like {LISTEN}, or [::1]:7480",
            field=option,
        )
    return host, int(port)


def _check_exposure(
    addresses: tuple[tuple[str, int], tuple[str, int]], *, has_tls: bool, insecure: bool
) -> None:
    (front, _), (admin, _) = addresses
    if not insecure and ((front not in LOOPBACK and not has_tls) or admin not in LOOPBACK):
        raise Refused(
            "not-encrypted",
            "other machines could reach the gateway without TLS",
            "set `--tls-cert` and `--tls-key` and keep `--admin` on this machine, or allow it with "
            "`--insecure`",
        )


def _check_installed() -> None:
    if find_spec("aiohttp") is None:
        raise InputError(
            "gateway-not-installed",
            "the gateway needs aiohttp, which is not installed",
            "run `pip install 'tenfold[gateway]'`",
        )


def _summary(state: RoutingState) -> dict[str, object]:
    return {
        "version": state.version,
        "services": [
            {
                "name": one.name,
                "models": list(models_of(one)),
                "revisions": len(one.revisions),
                "replicas": sum(len(each.replicas) for each in one.revisions),
                "overflow": [place.name for place in one.overflow],
                "teams": list(one.teams),
            }
            for one in state.services
        ],
        "teams": [one.name for one in state.teams],
        "tokens": len(state.tokens),
        "team_without_token": state.team_without_token,
    }


def _show_summary(state: RoutingState) -> None:
    from tenfold.cli.output import table  # noqa: PLC0415

    rows = [
        (
            one.name,
            ", ".join(models_of(one)),
            str(len(one.revisions)),
            str(sum(len(each.replicas) for each in one.revisions)),
            ", ".join(one.teams) or "all",
        )
        for one in state.services
    ]
    if rows:
        show(table("", ("service", "models", ">revisions", ">replicas", "teams"), rows))
    without = state.team_without_token
    who = f"requests without a token belong to team {without}" if without else "tokens required"
    show(f"{len(state.tokens)} tokens; {who}")
