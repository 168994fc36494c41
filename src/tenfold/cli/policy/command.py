"""`tenfold policy`: check a policy, show what it grants each team, and preview a change."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from msgspec.structs import replace

from tenfold.cli.arguments import Facts, Json
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
    help="Check, show and preview scheduling policies",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command(
    "tenfold.cli.policy.preview:preview_command",
    name="preview",
    help=(
        "Simulate a policy change, and show which teams gain or lose.\n\n"
        "The same jobs run under the current and the new policy; nothing is applied. "
        "Exits with status 1 if a run fails."
    ),
)
app.command(
    "tenfold.cli.policy.shadow:shadow_command",
    name="shadow",
    help=(
        "Show how often the shadow policy (`tenfold up --shadow`) agrees with the live policy.\n\n"
        "The shadow policy is evaluated at every live decision, but its actions are only "
        "recorded. The output shows where the two policies differ, not what would have "
        "happened; for that, use `tenfold replay --policy`."
    ),
)

EXIT_USAGE = 2
FleetFile = Annotated[Path | None, Parameter(help="Fleet file to compare the policy with")]


@app.command
def check(
    file: Annotated[Path, Parameter(help="Policy file")],
    *,
    fleet: FleetFile = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Report every error and warning in a policy file, with file and line.

    Exits with status 2 if the file has errors. With --fleet, accelerator types, quota totals,
    nodes and residency tags are also checked against that fleet.
    """
    checked = _checked(file, fleet, facts)
    if as_json:
        print_json({"faults": as_rows(checked.faults), "warnings": as_rows(checked.warnings)})
    else:
        show_checks([checked])
    raise Exit(EXIT_USAGE if checked.faults else 0)


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
    policy: Annotated[str, Parameter(help="Policy file, or name of a built-in policy")],
    *,
    fleet: FleetFile = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Show a policy's teams and quotas, and the quota totals compared with a fleet.

    Teams and prices that the policy does not set come from the fleet file.
    """
    chosen = policy_of(policy)
    spec = None
    if fleet is not None:
        opened = open_fleet(fleet, facts)
        spec = opened.spec
        if chosen.name == "governed":
            chosen = replace(chosen, govern=governance_of(chosen, spec, opened.catalogue))
    print_json(policy_json(chosen, spec)) if as_json else show_policy(chosen, spec)
