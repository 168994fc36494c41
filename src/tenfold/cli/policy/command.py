"""`tenfold policy`: check a policy, show whom it grants what, and try it before it is applied."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from msgspec.structs import replace

from tenfold.cli.errors import Exit
from tenfold.cli.fleet.check import as_rows, show_checks
from tenfold.cli.output import print_json
from tenfold.cli.policy.render import policy_json, show_policy
from tenfold.compose.fleet import FleetCheck, open_fleet
from tenfold.compose.governance import check_policy, governance_of
from tenfold.compose.inputs import policy_of
from tenfold.model.errors import InputError
from tenfold.model.fleet.finding import Finding

app = App(
    name="policy",
    help="Check, show and preview policies.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command("tenfold.cli.policy.preview:preview_command", name="preview")
app.command("tenfold.cli.policy.shadow:shadow_command", name="shadow")

EXIT_NO = 1
FleetFile = Annotated[Path | None, Parameter(help="A fleet file, to lay it beside.")]
Facts = Annotated[Path | None, Parameter(help="Folder of your own facts, over the shipped ones.")]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@app.command
def check(
    file: Annotated[Path, Parameter(help="A policy file.")],
    *,
    fleet: FleetFile = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Report every fault and warning of a policy file, with file and line.

    Ends with status 1 where the file has a fault. With --fleet, types, sums, nodes and
    residency are held against that fleet too.
    """
    checked = _checked(file, fleet, facts)
    if as_json:
        print_json({"faults": as_rows(checked.faults), "warnings": as_rows(checked.warnings)})
    else:
        show_checks([checked])
    raise Exit(EXIT_NO if checked.faults else 0)


def _checked(file: Path, fleet: Path | None, facts: Path | None) -> FleetCheck:
    try:
        return check_policy(file, fleet, facts)
    except InputError as error:
        if error.file != str(file):
            raise
        found = Finding(
            code=error.code,
            message=error.message,
            hint=error.hint,
            file=error.file,
            line=error.line,
        )
        return FleetCheck(file=str(file), faults=(found,), warnings=())


@app.command(name="show")
def show_command(
    policy: Annotated[str, Parameter(help="A policy file, or the name of a policy.")],
    *,
    fleet: FleetFile = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Show a policy: its teams with what they are sure of, and the sum against a fleet.

    Teams and prices that the policy leaves out are those of the fleet.
    """
    chosen = policy_of(policy)
    spec = None
    if fleet is not None:
        opened = open_fleet(fleet, facts)
        spec = opened.spec
        if chosen.name == "governed":
            chosen = replace(chosen, govern=governance_of(chosen, spec, opened.catalogue))
    print_json(policy_json(chosen, spec)) if as_json else show_policy(chosen, spec)
