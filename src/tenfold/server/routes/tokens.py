"""Tokens over HTTP, for admins: create, list and revoke."""

from anyio import to_thread
from litestar import Router, delete, get, post
from litestar.params import FromPath

from tenfold.model.api.tokens import CreateToken, NewToken, Token, Tokens
from tenfold.model.reason import Reason
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.tokens import Role
from tenfold.server.problems import Problem
from tenfold.server.runtime.deps import ControlDep
from tenfold.server.schemas import to_token
from tenfold.server.submissions import read_body


@post("/tokens", opt=requires_role(Role.admin), status_code=201, operation_id="createToken")
async def create_token(request: AuthedRequest, control: ControlDep) -> NewToken:
    """Create a token; it is shown only in this response."""
    row = read_body(CreateToken, await request.body(), "the new token")

    def create() -> NewToken:
        secret, token = control.tokens.create(
            name=row.name, team=row.team, role=Role[row.role], days=row.days
        )
        return NewToken(token=secret, record=to_token(token))

    return await to_thread.run_sync(create)


@get("/tokens", opt=requires_role(Role.admin), sync_to_thread=True, operation_id="listTokens")
def list_tokens(control: ControlDep) -> Tokens:
    """List all tokens, including expired and revoked ones."""
    return Tokens(tokens=tuple(to_token(token) for token in control.tokens.all()))


@delete(
    "/tokens/{token_id:str}",
    opt=requires_role(Role.admin),
    status_code=200,
    sync_to_thread=True,
    operation_id="revokeToken",
)
def revoke_token(control: ControlDep, token_id: FromPath[str]) -> Token:
    """Revoke a token immediately, with the access keys that depend on it."""
    token = control.tokens.revoke(token_id) if "\0" not in token_id else None
    if token is None:
        raise Problem(
            404,
            Reason("no-such-token", sentence=f"no token `{token_id}`"),
            "list them with `tenfold token list`",
        )
    if control.objects is not None:
        control.objects.revoke_keys_of(token.id)
    return to_token(token)


ROUTES = Router("/api/v1", route_handlers=[create_token, list_tokens, revoke_token])
