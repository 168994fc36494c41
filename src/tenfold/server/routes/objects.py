"""The object store over HTTP: where it is, its access keys, and the quotas of teams.

A key belongs to a team, and one that a member creates ends with the member's token.
"""

from typing import TypeVar

from anyio import to_thread
from litestar import Router, delete, get, post
from litestar.params import FromPath
from msgspec import Struct, convert
from msgspec import ValidationError as WrongValue

from tenfold.model.api.objects import (
    AccessKey,
    AccessKeys,
    CreateAccessKey,
    NewAccessKey,
    ObjectStore,
    StorageQuota,
)
from tenfold.model.errors import NoAnswer
from tenfold.model.reason import Reason
from tenfold.model.strings import FolderName
from tenfold.objects.s3.auth import identity
from tenfold.objects.serve.keys import create_key, revoke_key, set_quota, shown, shown_once
from tenfold.server.auth.access import AuthedRequest, requires_role, visible_team
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.object_store import ObjectStoreFolder
from tenfold.server.problems import Problem
from tenfold.server.runtime.deps import Control, ControlDep
from tenfold.server.submissions import read_body

Row = TypeVar("Row", bound=Struct)


@get("/objects", opt=requires_role(Role.viewer), sync_to_thread=True, operation_id="showObjects")
def show_objects(request: AuthedRequest, control: ControlDep) -> ObjectStore:
    """Show where the object store serves S3, and what teams store; below `operator`, your team."""
    store = control.objects
    if store is None:
        return ObjectStore(is_on=False, url="", teams=())
    teams = store.storage(visible_team(request.user, None))
    return ObjectStore(is_on=True, url=store.url(), teams=teams)


@get(
    "/objects/keys",
    opt=requires_role(Role.member),
    sync_to_thread=True,
    operation_id="listAccessKeys",
)
def list_keys(request: AuthedRequest, control: ControlDep) -> AccessKeys:
    """List access keys without their secrets; below `operator`, only your team's."""
    store, team = _store(control), visible_team(request.user, None)
    now_ms = control.now_ms()
    keys = [one for one in store.read_keys().keys if team in (None, one.team)]
    return AccessKeys(keys=tuple(shown(one, now_ms) for one in keys))


@post(
    "/objects/keys",
    opt=requires_role(Role.member),
    status_code=201,
    operation_id="createAccessKey",
)
async def create_access_key(request: AuthedRequest, control: ControlDep) -> NewAccessKey:
    """Create an access key; its secret is shown only in this response."""
    row = read_body(CreateAccessKey, await request.body(), "the new access key")
    store, team = _store(control), _own_team(request.user, row.team)
    now_ms = control.now_ms()
    # Those who may create tokens for others give keys to programs, which outlive a token.
    depends = request.user.role < Role.operator
    wish = identity.AccessKey(
        id="",
        secret="",
        team=team,
        name=row.name,
        created_ms=now_ms,
        is_read_only=row.read_only,
        token=request.user.id if depends else "",
        expires_ms=request.user.expires_ms if depends else 0,
    )
    made = await to_thread.run_sync(create_key, store.keys, wish)
    return shown_once(made, now_ms)


@delete(
    "/objects/keys/{key_id:str}",
    opt=requires_role(Role.member),
    status_code=200,
    sync_to_thread=True,
    operation_id="revokeAccessKey",
)
def revoke_access_key(
    request: AuthedRequest, control: ControlDep, key_id: FromPath[str]
) -> AccessKey:
    """Revoke an access key; the object store refuses it within a second."""
    store, team = _store(control), visible_team(request.user, None)
    known = [one.id for one in store.read_keys().keys if team in (None, one.team)]
    try:
        if key_id not in known:
            raise NoAnswer("key-unknown", "")
        return shown(revoke_key(store.keys, key_id), control.now_ms())
    except NoAnswer:
        raise Problem(
            404,
            Reason("key-unknown", sentence=f"no access key `{key_id}`"),
            "list them with `tenfold objects key list`",
        ) from None


@post(
    "/objects/quotas/{team:str}",
    opt=requires_role(Role.admin),
    status_code=200,
    operation_id="setStorageQuota",
)
async def set_storage_quota(
    request: AuthedRequest, control: ControlDep, team: FromPath[str]
) -> StorageQuota:
    """Set what a team may store; what it stores already stays."""
    row = read_body(StorageQuota, await request.body(), "the quota")
    store, name = _store(control), _team_name(team)
    await to_thread.run_sync(set_quota, store.keys, name, row)
    return row


def _store(control: Control) -> ObjectStoreFolder:
    if control.objects is None:
        raise Problem(
            409,
            Reason("objects-off", sentence="this control plane runs no object store"),
            "start it with `tenfold up --objects DIR`, or name a store with `--dir`",
        )
    return control.objects


def _own_team(token: Token, team: str | None) -> str:
    """Return the team of a new key: another team's only for operators."""
    if team is None or team == token.team or token.sees_all_teams:
        return team or token.team
    raise Problem(
        403,
        Reason(
            "other-team",
            sentence=f"the key is for team `{team}`, but the token belongs to team `{token.team}`",
        ),
        "leave the team out, or ask an operator",
    )


def _team_name(team: str) -> str:
    try:
        return convert(team, FolderName)
    except WrongValue as error:
        raise Problem(
            400,
            Reason("wrong-value", sentence=f"`{team[:80]}` is no name of a team: {error}"),
            "use letters, digits, dots, dashes and underscores",
        ) from None


ROUTES = Router(
    "/api/v1",
    route_handlers=[
        show_objects,
        list_keys,
        create_access_key,
        revoke_access_key,
        set_storage_quota,
    ],
)
