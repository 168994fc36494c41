"""`tenfold token`: who may ask the control plane for what."""

import sys
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.job.live_render import show_tokens
from tenfold.cli.output import print_json, show
from tenfold.client.client import Client
from tenfold.model.api.tokens import RoleName

app = App(
    name="token",
    help="Make, list and revoke tokens.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@app.command(name="create")
def create_command(
    name: Annotated[str, Parameter(help="Whose it is, for the record.")],
    *,
    team: Annotated[str, Parameter(help="Whose jobs it sees and hands in.")],
    role: Annotated[
        RoleName, Parameter(help="viewer, member, operator or admin. member.")
    ] = "member",
    days: Annotated[float | None, Parameter(help="How long it holds. 90.")] = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it: this is the one time that it is shown."""
    with Client() as client:
        made = client.create_token(name, team=team, role=role, days=days)
    if as_json:
        print_json(made)
        return
    record = made.record
    until = (record.expires_at or "")[:10]
    said = f"{record.role} of team `{record.team}` until {until}, to be revoked as {record.id}"
    # The token alone goes to standard output, for whoever reads it into a variable.
    sys.stderr.write(f"{said}; it is not shown again\n")
    show(made.token)


@app.command(name="list")
def list_command(*, as_json: Json = False) -> None:
    """List the tokens, those that are over as well; what makes them tokens is not kept."""
    with Client() as client:
        tokens = client.tokens()
    print_json(tokens) if as_json else show_tokens(tokens)


@app.command(name="revoke")
def revoke_command(
    token: Annotated[str, Parameter(help="Its id, as `token list` shows it.")],
    *,
    as_json: Json = False,
) -> None:
    """End a token now."""
    with Client() as client:
        ended = client.revoke_token(token)
    print_json(ended) if as_json else show(f"`{ended.id}` of `{ended.name}` is revoked")
