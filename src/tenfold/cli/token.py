"""`tenfold token`: create, list and revoke API tokens."""

import sys
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.job.live_render import show_tokens
from tenfold.cli.output import print_json, show
from tenfold.client.client import Client
from tenfold.model.api.tokens import DAYS, RoleName

app = App(
    name="token",
    help="Create, list and revoke tokens.",
    help_format="plaintext",
)

Json = Annotated[bool, Parameter(name="--json", negative="", show_default=False, help="Print JSON")]


@app.command(name="create")
def create_command(
    name: Annotated[str, Parameter(help="Owner of the token, for the record")],
    *,
    team: Annotated[str, Parameter(help="Team whose jobs it can see and submit")],
    role: Annotated[RoleName, Parameter(help="What it may do")] = "member",
    days: Annotated[float, Parameter(help="Days until it expires")] = DAYS,
    as_json: Json = False,
) -> None:
    """Create a token and print it; it is shown only once."""
    with Client() as client:
        made = client.create_token(name, team=team, role=role, days=days)
    if as_json:
        print_json(made)
        return
    record = made.record
    until = (record.expires_at or "")[:10]
    summary = f"role {record.role}, team `{record.team}`, expires {until}, id {record.id}"
    # Only the token goes to standard output, so that scripts can read it into a variable.
    sys.stderr.write(f"{summary}; the token is shown only once\n")
    show(made.token)


@app.command(name="list")
def list_command(*, as_json: Json = False) -> None:
    """List all tokens, including expired and revoked ones, without their secrets."""
    with Client() as client:
        tokens = client.tokens()
    print_json(tokens) if as_json else show_tokens(tokens)


@app.command(name="revoke")
def revoke_command(
    token: Annotated[str, Parameter(help="Token id, as in `token list`")],
    *,
    as_json: Json = False,
) -> None:
    """Revoke a token immediately."""
    with Client() as client:
        ended = client.revoke_token(token)
    print_json(ended) if as_json else show(f"revoked token `{ended.id}` of `{ended.name}`")
