"""Tokens over HTTP, for admins: make one, list them, end one."""

from anyio import to_thread
from litestar import Router, delete, get, post
from litestar.params import FromPath

from tenfold.model.api.tokens import CreateToken, NewToken, Token, Tokens
from tenfold.model.reason import Reason
from tenfold.server.auth.access import Asked, needs
from tenfold.server.auth.tokens import Role
from tenfold.server.problems import Problem
from tenfold.server.runtime.deps import Given
from tenfold.server.schemas import token_told
from tenfold.server.submissions import read_body


@post("/tokens", opt=needs(Role.admin), status_code=201, operation_id="createToken")
async def create_token(request: Asked, control: Given) -> NewToken:
    """Make a token for somebody; it is shown now and never again."""
    row = read_body(CreateToken, await request.body(), "the token")

    def create() -> NewToken:
        secret, token = control.tokens.create(
            name=row.name, team=row.team, role=Role[row.role], days=row.days
        )
        return NewToken(token=secret, record=token_told(token))

    return await to_thread.run_sync(create)


@get("/tokens", opt=needs(Role.admin), sync_to_thread=True, operation_id="listTokens")
def list_tokens(control: Given) -> Tokens:
    """List the tokens, those that are over as well."""
    return Tokens(tokens=tuple(token_told(token) for token in control.tokens.all()))


@delete(
    "/tokens/{token_id:str}",
    opt=needs(Role.admin),
    status_code=200,
    sync_to_thread=True,
    operation_id="revokeToken",
)
def revoke_token(control: Given, token_id: FromPath[str]) -> Token:
    """End a token now."""
    token = control.tokens.revoke(token_id) if "\0" not in token_id else None
    if token is None:
        raise Problem(
            404, Reason("no-such-token", sentence=f"there is no token `{token_id}`"), "list them"
        )
    return token_told(token)


ROUTES = Router("/api/v1", route_handlers=[create_token, list_tokens, revoke_token])
