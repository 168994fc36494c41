"""`tenfold service`: deploy, show, scale and roll out services."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import AT_LEAST_ONE, NOT_NEGATIVE, Json
from tenfold.model.errors import InputError

app = App(
    name="service",
    help="Deploy, show, scale and roll out services.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Name = Annotated[str, Parameter(help="Service name")]


@app.command(name="deploy")
def deploy_command(
    file: Annotated[Path, Parameter(help="Service file (TOML or YAML)")],
    *,
    model: Annotated[
        str | None,
        Parameter(help="Registered model version to serve, as NAME@3 or NAME@ALIAS"),
    ] = None,
    wait: Annotated[
        bool,
        Parameter(negative="", help="Wait until it is ready or has failed"),
    ] = False,
    timeout_s: Annotated[
        float,
        Parameter(
            help="With --wait, how long to wait, in seconds (default: 600)",
            validator=validators.Number(gt=0),
        ),
    ] = 600.0,
    new_revision: Annotated[
        bool,
        Parameter(
            negative="",
            help="Create a new revision even if the file is unchanged, for example after a code "
            "change",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Deploy or update a service.

    A change to what the replicas run creates a new revision. With `canary` in the file, the new
    revision receives traffic in steps; otherwise it receives all of it once it is ready.
    Other
    changes apply at once.

    With --model, or `model` in the file, `{model}` in the command is replaced by the location of
    that version. An alias is resolved at deployment: moving it later has no effect until the next
    deployment.

    With --wait, the exit status is 1 if the service does not become ready.
    """
    from tenfold.cli.service import live  # noqa: PLC0415

    live.deploy(
        file,
        model=model or "",
        new_revision=new_revision,
        wait_s=timeout_s if wait else None,
        as_json=as_json,
    )


@app.command(name="list")
def list_command(*, as_json: Json = False) -> None:
    """List services."""
    from tenfold.cli.service import live  # noqa: PLC0415

    live.list_services(as_json=as_json)


@app.command(name="show")
def show_command(name: Name, *, as_json: Json = False) -> None:
    """Show a service: its revisions, its replicas, and the reason for the replica count."""
    from tenfold.cli.service import live  # noqa: PLC0415

    live.show_service(name, as_json=as_json)


@app.command(name="logs")
def logs_command(
    name: Name,
    *,
    replica: Annotated[
        str | None, Parameter(help="Job name of a replica (default: all replicas, one by one)")
    ] = None,
    lines: Annotated[
        int,
        Parameter(
            name=("--lines", "-n"),
            help="Last lines of each replica (default: 20)",
            validator=AT_LEAST_ONE,
        ),
    ] = 20,
    follow: Annotated[
        bool,
        Parameter(
            name=("--follow", "-f"),
            negative="",
            help="Stream the log; needs --replica unless there is only one",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Print the last log lines of replicas."""
    from tenfold.cli.service import live  # noqa: PLC0415

    if follow and as_json:
        raise InputError(
            "two-questions",
            "--follow and --json cannot be used together",
            "leave out one of them",
        )
    live.logs(name, replica, lines, follow=follow, as_json=as_json)


@app.command(name="scale")
def scale_command(
    name: Name,
    replicas: Annotated[
        int | None, Parameter(help="A fixed number of replicas", validator=AT_LEAST_ONE)
    ] = None,
    *,
    least: Annotated[
        int | None,
        Parameter(name="--min", help="Minimum number of replicas", validator=NOT_NEGATIVE),
    ] = None,
    most: Annotated[
        int | None,
        Parameter(name="--max", help="Maximum number of replicas", validator=AT_LEAST_ONE),
    ] = None,
    as_json: Json = False,
) -> None:
    """Set a fixed number of replicas, or a range for autoscaling."""
    from tenfold.cli.service import live  # noqa: PLC0415

    if (replicas is None) == (least is None and most is None):
        raise InputError(
            "two-questions",
            "give either a number of replicas, or --min and --max",
            "as in `tenfold service scale chat 3`",
        )
    live.scale(name, replicas, least, most, as_json=as_json)


@app.command(name="canary")
def canary_command(
    name: Name,
    weight: Annotated[
        float,
        Parameter(
            help="Percentage of requests to send to the new revision",
            validator=validators.Number(gte=0, lt=100),
        ),
    ],
    *,
    as_json: Json = False,
) -> None:
    """Set the traffic share of the new revision and pause the rollout there."""
    from tenfold.cli.service import live  # noqa: PLC0415

    live.change("canary", name, weight, as_json=as_json)


@app.command(name="promote")
def promote_command(name: Name, *, as_json: Json = False) -> None:
    """Send all traffic to the new revision.

    It first gets as many ready replicas as the service needs; then the old ones drain.
    """
    from tenfold.cli.service import live  # noqa: PLC0415

    live.change("promote", name, as_json=as_json)


@app.command(name="rollback")
def rollback_command(name: Name, *, as_json: Json = False) -> None:
    """Cancel the rollout in progress; if there is none, return to the previous revision."""
    from tenfold.cli.service import live  # noqa: PLC0415

    live.change("rollback", name, as_json=as_json)


@app.command(name="remove")
def remove_command(name: Name, *, as_json: Json = False) -> None:
    """Remove a service: its replicas finish their requests and stop."""
    from tenfold.cli.service import live  # noqa: PLC0415

    live.change("remove", name, as_json=as_json)
