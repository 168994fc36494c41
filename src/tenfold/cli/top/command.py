"""`tenfold top`: a terminal dashboard of the control plane."""

from importlib.util import find_spec
from sys import stdin, stdout
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.client.endpoint import find_endpoint
from tenfold.model.errors import InputError

app = App(
    name="top",
    help="Watch the fleet, the queue, jobs and alarms in the terminal.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@app.default
def top_command(
    *,
    team: Annotated[str | None, Parameter(help="Only jobs of this team")] = None,
    user: Annotated[
        str | None, Parameter(name=("--user", "-u"), help="Only jobs of this user")
    ] = None,
    state: Annotated[
        str | None, Parameter(name=("--state", "-t"), help="Only jobs in this state")
    ] = None,
    interval: Annotated[float, Parameter(help="Seconds between refreshes (default: 2)")] = 2.0,
    limit: Annotated[
        int, Parameter(name=("--limit", "-n"), help="Maximum number of jobs (default: 1000)")
    ] = 1_000,
) -> None:
    """Watch the fleet, the queue, jobs and alarms in the terminal.

    Keys: arrows select a job, Enter shows its details, why it waits and the end of its log;
    s sorts by the next column, r reverses, / filters by team, user or state, q quits.
    """
    from tenfold.cli.job.listing import checked_state  # noqa: PLC0415

    if state:
        checked_state(state)
    if find_spec("textual") is None:
        raise InputError(
            "textual-not-installed",
            "`tenfold top` needs the package `textual`, which is not installed",
            "install it with `pip install 'tenfold[top]'`, or use `tenfold status` and"
            " `tenfold job list --watch`",
        )
    if not (stdin.isatty() and stdout.isatty()):
        raise InputError(
            "not-a-terminal",
            "`tenfold top` needs a terminal",
            "use `tenfold status` or `tenfold job list`, which can be piped",
        )
    find_endpoint()
    from tenfold.cli.top.reader import TopFilter, TopReader  # noqa: PLC0415
    from tenfold.cli.top.screen import TopApp  # noqa: PLC0415

    filters = TopFilter(team=team or "", user=user or "", state=state or "")
    TopApp(TopReader(limit=max(1, limit)), filters, max(0.2, interval)).run()
