"""`tenfold token`: create, list and revoke API tokens."""

from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Json
from tenfold.cli.job.live_render import show_tokens
from tenfold.cli.output import complain, print_json, show
from tenfold.client.client import Client
from tenfold.client.problems import FaultyRequest
from tenfold.model.api.tokens import DAYS, DAYS_MAX, RoleName
from tenfold.model.errors import InputError, TenfoldError

app = App(
    name="token",
    help="Create, list and revoke tokens.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@app.command(name="create")
def create_command(
    name: Annotated[str, Parameter(help="Name of the token's owner, stored with the token")],
    *,
    team: Annotated[str, Parameter(help="Team whose jobs the token can view and submit")],
    role: Annotated[RoleName, Parameter(help="Role of the token (default: member)")] = "member",
    days: Annotated[
        float,
        Parameter(
            help="Days until the token expires (default: 90)",
            validator=validators.Number(gt=0, lte=DAYS_MAX),
        ),
    ] = DAYS,
    as_json: Json = False,
) -> None:
    """Create a token and print it; the token is shown only once."""
    with Client() as client:
        try:
            made = client.create_token(name, team=team, role=role, days=days)
        except FaultyRequest as error:
            raise _with_options(error) from None
    if as_json:
        print_json(made)
        return
    record = made.record
    until = (record.expires_at or "")[:10]
    summary = f"role {record.role}, team `{record.team}`, expires {until}, id {record.id}"
    # Only the token goes to standard output, so that scripts can read it into a variable.
    complain(f"{summary}; the token is shown only once")
    show(made.token)


def _with_options(error: FaultyRequest) -> TenfoldError:
    """Return the first error with the option that was given, instead of the field."""
    if not error.faults:
        return error
    fault = error.faults[0]
    option = fault.field if fault.field == "name" else f"--{fault.field}"
    message = fault.message.replace(f"`{fault.field}`", f"`{option}`", 1)
    return InputError(fault.code, message, fault.hint, field=option)


@app.command(name="list")
def list_command(*, as_json: Json = False) -> None:
    """List all tokens, including expired and revoked ones, without their secrets."""
    with Client() as client:
        tokens = client.tokens()
    print_json(tokens) if as_json else show_tokens(tokens)


@app.command(name="revoke")
def revoke_command(
    token: Annotated[str, Parameter(help="Token ID, as shown by `token list`")],
    *,
    as_json: Json = False,
) -> None:
    """Revoke a token immediately."""
    with Client() as client:
        revoked_before = {one.id: one.revoked_at for one in client.tokens()}.get(token)
        ended = client.revoke_token(token)
    if as_json:
        print_json(ended)
    elif revoked_before:
        when = f"{revoked_before[:10]} {revoked_before[11:16]} UTC"
        show(f"token `{ended.id}` of `{ended.name}` was already revoked ({when})")
    else:
        show(f"revoked token `{ended.id}` of `{ended.name}`")
