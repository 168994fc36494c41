"""Output of `tenfold sim run`: JSON, tables with small charts, and an optional HTML page."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

from tenfold.cli.output import print_json, print_note
from tenfold.cli.sim.json import run_json
from tenfold.cli.sim.page import run_page
from tenfold.cli.sim.render import show_run
from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult, simulate
from tenfold.engine.loop import Witness
from tenfold.files.core.write import open_new_file
from tenfold.report.pages.sim import sim_report
from tenfold.study.sim.bill import bill
from tenfold.study.sim.detail import run_detail


def run_and_present(
    prepared: PreparedRun, html: Path | None, *, force: bool, detail: bool, as_json: bool
) -> None:
    """Run a simulation and print the result; an existing page is refused before the run."""
    opened = nullcontext() if html is None else open_new_file(html, force=force)
    with opened as stream:
        result = _simulated(prepared)
        needs_detail = detail or html is not None or not as_json
        run_details = run_detail(prepared.request, result) if needs_detail else None
        costs = bill(prepared.spec, result.summary)
        if stream is not None:
            assert run_details is not None, "a page needs the details of the run"
            stream.write(sim_report(run_page(prepared, result, run_details, costs)).encode())
    if html is not None:
        print_note(f"report written to {html}")
    if as_json:
        print_json(run_json(prepared, result, costs, run_details))
    else:
        show_run(prepared, result, costs, run_details)


def present(
    prepared: PreparedRun, result: SimResult, *, as_json: bool, extra: Mapping[str, object]
) -> None:
    """Print the result of a finished run; `extra` is added to the JSON."""
    costs = bill(prepared.spec, result.summary)
    if as_json:
        print_json(run_json(prepared, result, costs) | dict(extra))
    else:
        show_run(prepared, result, costs, run_detail(prepared.request, result))


def _simulated(prepared: PreparedRun) -> SimResult:
    if not sys.stderr.isatty():
        return simulate(prepared.request)
    # What draws the bar takes longer to load than a short run takes to simulate.
    from tenfold.cli.progress import JobsDone, progress  # noqa: PLC0415

    with progress("jobs done", len(prepared.request.jobs)) as done:
        witnesses: list[Witness] = [JobsDone(done)]
        return simulate(prepared.request, witnesses=witnesses)
