"""`tenfold objects key`: access keys of an object store, and quotas of its teams.

Without a folder or a file, the commands are about the object store of the control plane.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Json
from tenfold.cli.output import complain, print_json, show, table
from tenfold.model.errors import InputError
from tenfold.report.figures import file_bytes

if TYPE_CHECKING:
    from tenfold.model.api.objects import AccessKey, NewAccessKey

app = App(
    name="key",
    help="Create, list and revoke access keys, and set team quotas.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
Folder = Annotated[
    Path | None,
    Parameter(
        name="--dir", help="Directory of the object store (default: that of the control plane)"
    ),
]
KeysFile = Annotated[
    Path | None,
    Parameter(help="Access key file (default: access-keys.json in --dir)"),
]


@app.command(name="create")
def create_command(
    name: Annotated[str, Parameter(help="Name of the key's user, stored with the key")],
    *,
    team: Annotated[
        str | None,
        Parameter(
            help="Team whose buckets the key can use (default: your team, on a control plane)"
        ),
    ] = None,
    folder: Folder = None,
    access_keys: KeysFile = None,
    read_only: Annotated[bool, Parameter(negative="", help="Make the key read-only")] = False,
    as_json: Json = False,
) -> None:
    """Create an access key and print it; servers accept it within a second.

    With a control plane, a key that a member creates stops working when the member's token does.
    """
    path = _path(folder, access_keys)
    if path is None:
        from tenfold.client.client import Client  # noqa: PLC0415

        with Client() as client:
            made = client.create_access_key(name, team=team, read_only=read_only)
    else:
        made = _created(path, name, team, read_only=read_only)
    if as_json:
        print_json(made)
        return
    until = f", expires {made.expires_at[:10]}" if made.expires_at else ""
    complain(
        f"access key of `{made.name}`, team `{made.team}`{until}; set these in the"
        " client's environment"
    )
    show(f"export AWS_ACCESS_KEY_ID={made.access_key_id}")
    show(f"export AWS_SECRET_ACCESS_KEY={made.secret_access_key}")


@app.command(name="list")
def list_command(
    *, folder: Folder = None, access_keys: KeysFile = None, as_json: Json = False
) -> None:
    """List all access keys, including revoked ones, without their secrets."""
    path = _path(folder, access_keys)
    keys = _listed(path)
    if as_json:
        print_json(keys)
        return
    rows = [
        [key.access_key_id, key.name, key.team, key.state, (key.expires_at or "-")[:10]]
        for key in keys
    ]
    show(table("", ["access key", "name", "team", "state", "expires"], rows))


@app.command(name="revoke")
def revoke_command(
    key: Annotated[str, Parameter(help="Access key ID, as shown by `objects key list`")],
    *,
    folder: Folder = None,
    access_keys: KeysFile = None,
    as_json: Json = False,
) -> None:
    """Revoke an access key; servers refuse it within a second."""
    path = _path(folder, access_keys)
    if path is None:
        from tenfold.client.client import Client  # noqa: PLC0415

        with Client() as client:
            revoked = client.revoke_access_key(key)
    else:
        from tenfold.clock.wall import now_ms  # noqa: PLC0415
        from tenfold.objects.serve.keys import revoke_key, shown  # noqa: PLC0415

        revoked = shown(revoke_key(_existing(path), key), now_ms())
    if as_json:
        print_json(revoked)
    else:
        show(f"revoked access key `{revoked.access_key_id}` of `{revoked.name}`")


@app.command(name="quota")
def quota_command(
    team: Annotated[str, Parameter(help="Team")],
    *,
    folder: Folder = None,
    access_keys: KeysFile = None,
    gigabytes: Annotated[
        float | None,
        Parameter(
            name="--stored-gb",
            help="Gigabytes the team may store (default: no limit)",
            validator=validators.Number(gt=0),
        ),
    ] = None,
    objects: Annotated[
        int | None,
        Parameter(
            help="Objects the team may store, old versions included (default: no limit)",
            validator=validators.Number(gte=1),
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Set a team's storage quota; existing objects are kept."""
    limit = 0 if gigabytes is None else max(1, round(gigabytes * 1e9))
    path = _path(folder, access_keys)
    if path is None:
        from tenfold.client.client import Client  # noqa: PLC0415

        with Client() as client:
            client.set_storage_quota(team, stored_bytes=limit, objects=objects or 0)
    else:
        from tenfold.model.api.objects import StorageQuota  # noqa: PLC0415
        from tenfold.objects.serve.keys import set_quota  # noqa: PLC0415

        quota = StorageQuota(stored_bytes=limit, objects=objects or 0)
        set_quota(_existing(path), team, quota)
    if as_json:
        print_json({"team": team, "quota_bytes": limit, "quota_objects": objects or 0})
    else:
        amount = file_bytes(limit) if limit else "any number of bytes"
        show(f"team `{team}` may store {amount} in {objects or 'any number of'} objects")


def _created(path: Path, name: str, team: str | None, *, read_only: bool) -> "NewAccessKey":
    from tenfold.clock.wall import now_ms  # noqa: PLC0415
    from tenfold.objects.s3.auth.identity import AccessKey  # noqa: PLC0415
    from tenfold.objects.serve.keys import create_key, shown_once  # noqa: PLC0415

    if not team:
        raise InputError(
            "no-team",
            f"no team given for `{name}`: an access key file has no default team",
            "set `--team`",
            field="--team",
        )
    at_ms = now_ms()
    wish = AccessKey(
        id="", secret="", team=team, name=name, created_ms=at_ms, is_read_only=read_only
    )
    return shown_once(create_key(path, wish), at_ms)


def _listed(path: Path | None) -> "list[AccessKey]":
    if path is None:
        from tenfold.client.client import Client  # noqa: PLC0415

        with Client() as client:
            return list(client.access_keys())
    from tenfold.clock.wall import now_ms  # noqa: PLC0415
    from tenfold.objects.serve.keys import read_key_file, shown  # noqa: PLC0415

    at_ms = now_ms()
    return [shown(key, at_ms) for key in read_key_file(_existing(path)).keys]


def _path(folder: Path | None, access_keys: Path | None) -> Path | None:
    """Return the file of access keys; None for the control plane."""
    if access_keys is not None or folder is None:
        return access_keys
    from tenfold.objects.serve.settings import KEYS_FILE  # noqa: PLC0415

    return folder / KEYS_FILE


def _existing(path: Path) -> Path:
    if not path.exists():
        raise InputError(
            "no-access-keys",
            f"there are no access keys at `{path}`",
            "create one with `tenfold objects key create`",
        )
    return path
