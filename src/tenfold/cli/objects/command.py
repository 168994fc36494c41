"""`tenfold objects`: the commands of the object store."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.output import print_line
from tenfold.model.errors import InputError, Refused

app = App(
    name="objects",
    help="Run an S3 server on directories and object stores, and maintain its storage tiers.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command(
    "tenfold.cli.objects.key:app",
    name="key",
    help="Create, list and revoke access keys, and set team quotas.",
)
app.command(
    "tenfold.cli.objects.du:du_command",
    name="du",
    help="""Show buckets with their team, versions and bytes.

    Versions include old versions and delete markers; parts of unfinished uploads are not counted.
    """,
)
_CHANGE = "tenfold.cli.objects.tiers.change"
_CHECK = "tenfold.cli.objects.tiers.check"
_SHOW = "tenfold.cli.objects.tiers.show"
app.command(
    f"{_SHOW}:tier_app", name="tier", help="List storage tiers, and simulate tiering policies."
)
app.command(
    f"{_CHANGE}:expand_command",
    name="expand",
    help="Move data onto backends added to the tier file, in proportion to their weights.",
)
app.command(
    f"{_CHANGE}:drain_command",
    name="drain",
    help="Move everything off a backend, or a whole tier into another, so that it can be removed.",
)
app.command(
    f"{_CHANGE}:replace_command",
    name="replace",
    help="Move the shards of a backend to a new one of its tier; unreadable ones are rebuilt.",
)
app.command(
    f"{_CHANGE}:rebalance_command",
    name="rebalance",
    help="Move shards to their assigned backends, and recreate missing ones.",
)
app.command(
    f"{_CHECK}:scrub_command",
    name="scrub",
    help="Read every shard, repair damaged ones, and remove files that nothing uses.",
)
app.command(
    f"{_CHECK}:rebuild_command",
    name="rebuild",
    help="Rebuild the shards of a replaced disk, or the catalogue from the shards.",
)
app.command(
    f"{_SHOW}:why_command",
    name="why",
    help="Show which tier an object is in, where its shards are, and whether they are intact.",
)
app.command(
    "tenfold.cli.objects.tiers.durability:durability_command",
    name="durability",
    help="Compute the annual loss probability and the rebuild time of a layout.",
)
LOOPBACK = ("localhost", "127.0.0.1", "::1")
Folder = Annotated[Path, Parameter(name="--dir", help="Directory of the object store")]


@app.command(name="serve")
def serve_command(
    *,
    folder: Folder,
    tiers: Annotated[
        Path | None,
        Parameter(help="Tier file (default: tiers.toml in --dir, created if missing)"),
    ] = None,
    host: Annotated[str, Parameter(help="Address to listen on (default: 127.0.0.1)")] = "127.0.0.1",
    port: Annotated[
        int,
        Parameter(
            help="Port; 0 selects a free one (default: 9000)",
            validator=validators.Number(gte=0, lte=65_535),
        ),
    ] = 9000,
    access_keys: Annotated[
        Path | None,
        Parameter(help="Access key file (default: access-keys.json in --dir)"),
    ] = None,
    processes: Annotated[
        int,
        Parameter(
            help="Processes that share the port (default: 1)",
            validator=validators.Number(gte=1, lte=256),
        ),
    ] = 1,
    region: Annotated[
        str, Parameter(help="Region in responses (default: us-east-1)")
    ] = "us-east-1",
    domain: Annotated[
        tuple[str, ...],
        Parameter(help="Base domain for virtual-hosted-style requests (BUCKET.DOMAIN); repeatable"),
    ] = (),
    acls: Annotated[
        bool,
        Parameter(negative="", help="Allow access control lists to share objects with other teams"),
    ] = False,
    admin_port: Annotated[
        int | None,
        Parameter(
            help="Port for /metrics and /health on this machine; 0 selects a free one",
            validator=validators.Number(gte=0, lte=65_535),
        ),
    ] = None,
    requests_max: Annotated[
        int,
        Parameter(
            help="Maximum concurrent requests per process; further ones get 503 SlowDown "
            "(default: 4096)",
            validator=validators.Number(gte=1),
        ),
    ] = 4096,
    drain_s: Annotated[
        float,
        Parameter(
            name="--drain-timeout-s",
            help="Seconds to let requests finish after SIGTERM (default: 30)",
            validator=validators.Number(gte=0),
        ),
    ] = 30.0,
    tls_cert: Annotated[Path | None, Parameter(help="TLS certificate (PEM file)")] = None,
    tls_key: Annotated[
        Path | None, Parameter(help="Private key of the certificate (PEM file)")
    ] = None,
    insecure: Annotated[
        bool, Parameter(negative="", help="Allow access from other machines without TLS")
    ] = False,
) -> None:
    """Run the S3 server until Ctrl-C or SIGTERM. Requests in progress are completed first.

    No control plane is needed. Create an access key first, with `tenfold objects key create`.
    """
    if (tls_cert is None) != (tls_key is None):
        raise InputError(
            "tls-half",
            "TLS needs a certificate and its key",
            "set both `--tls-cert` and `--tls-key`",
        )
    check_network(host, has_tls=tls_cert is not None, insecure=insecure)
    check_installed()
    from tenfold.objects.serve.settings import KEYS_FILE, ServerSettings  # noqa: PLC0415
    from tenfold.objects.serve.supervisor import run_server  # noqa: PLC0415

    keys = access_keys or folder / KEYS_FILE
    if not keys.exists():
        raise InputError(
            "no-access-keys",
            f"there are no access keys at `{keys}`",
            f"create one: tenfold objects key create NAME --team TEAM --dir {folder}",
        )
    settings = ServerSettings(
        folder=str(folder.resolve()),
        host=host,
        port=port,
        keys=str(keys.resolve()),
        tiers="" if tiers is None else str(tiers.resolve()),
        processes=processes,
        region=region,
        domains=domain,
        has_acls=acls,
        admin_port=-1 if admin_port is None else admin_port,
        requests_max=requests_max,
        drain_s=drain_s,
        tls_cert="" if tls_cert is None else str(tls_cert.resolve()),
        tls_key="" if tls_key is None else str(tls_key.resolve()),
    )
    run_server(settings, _print_started)


def check_network(host: str, *, has_tls: bool, insecure: bool) -> None:
    """Raise if secrets would cross the network unencrypted."""
    if host not in LOOPBACK and not has_tls and not insecure:
        raise Refused(
            "not-encrypted",
            "other machines could reach the object store without TLS",
            "set `--tls-cert` and `--tls-key`, or allow it with `--insecure`",
        )


def check_installed() -> None:
    """Say which extra is missing."""
    missing = [name for name in ("awscrt", "obstore", "pyeclib") if find_spec(name) is None]
    if missing:
        raise InputError(
            "objects-not-installed",
            f"the object store needs {_listed(missing)} installed",
            "run `pip install 'tenfold[objects]'`",
        )


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _print_started(url: str, admin: str) -> None:
    print_line(f"objects: {url}")
    if admin:
        print_line(f"admin: {admin}")
