"""`tenfold cost report`: dollars and energy by team, job, class and accelerator."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from msgspec.structs import replace

from tenfold.cli.arguments import AT_LEAST_ONE, Force, Json
from tenfold.cli.cost.render import cost_csv, cost_page, show_cost
from tenfold.cli.options import options_from
from tenfold.cli.output import print_json, print_note
from tenfold.cli.sim.options import RestartCost, world_settings
from tenfold.client.endpoint import running_state_dir
from tenfold.files.core.write import write_new_file
from tenfold.model.errors import InputError
from tenfold.study.cost.question import CostQuestion, cost_answer
from tenfold.study.cost.report import Dimension
from tenfold.study.replay.records import JOURNAL

app = App(
    name="cost",
    help="Report what a fleet cost, and what would cost less",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@app.command
@options_from(CostQuestion)
def report(
    question: CostQuestion,
    *,
    by: Annotated[
        Dimension,
        Parameter(help="Rows: team, job, class, accelerator or owner (default: team)"),
    ] = "team",
    recommend: Annotated[
        bool,
        Parameter(negative="", help="Simulate changes and show those that save money (slow)"),
    ] = False,
    restart_cost_s: RestartCost = None,
    top: Annotated[int, Parameter(help="Rows to print (default: 25)", validator=AT_LEAST_ONE)] = 25,
    csv: Annotated[Path | None, Parameter(help="Also write all rows as CSV to this file")] = None,
    html: Annotated[Path | None, Parameter(help="Also write an HTML report to this file")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Report dollars, energy and CO2e of a recorded or simulated run.

    Charges, idle capacity and overhead add up to the total exactly. Idle capacity is shown
    separately, and divided among the rows in proportion to their charges. Without a price in the
    fleet file, the
    median price of the accelerator is assumed. Without `--bundle` and `--jobs`, the report covers
    the control plane on this machine.
    """
    answer = cost_answer(
        _of_this_machine(question),
        world_settings(restart_cost_s, 0),
        with_recommendations=recommend,
    )
    if csv is not None:
        write_new_file(csv, cost_csv(answer.report), force=force)
        print_note(f"rows written to {csv}")
    if html is not None:
        write_new_file(html, cost_page(answer), force=force)
        print_note(f"report written to {html}")
    if as_json:
        print_json(answer)
    else:
        show_cost(answer, by=by, top=top)


def _of_this_machine(question: CostQuestion) -> CostQuestion:
    """Return a question about the journal of this machine's control plane if no other is named."""
    if question.bundle is not None or question.jobs is not None:
        return question
    state_dir = running_state_dir()
    if not (state_dir / JOURNAL).is_file():
        raise InputError(
            "no-usage",
            f"no usage to report: no `--bundle` or `--jobs`, and no journal in `{state_dir}`",
            "use `--bundle` for a recorded run, a state directory of `tenfold up` or the database"
            " URL of its journal, or `--jobs` and `--fleet` to simulate a job table",
            field="--bundle",
        )
    return replace(question, bundle=str(state_dir))
