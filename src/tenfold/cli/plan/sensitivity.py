"""Run and show the sensitivity of a plan: which demand changes it first."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import get_args

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tenfold.cli.output import show, table
from tenfold.cli.screen import ScreenConsole, Text
from tenfold.report.pages.html import Section, prose_html, table_html
from tenfold.study.plan.sensitivity import (
    LOWERED,
    Driver,
    DriverName,
    SensitivityAnswer,
    StepName,
    serve_sensitivity,
    train_sensitivity,
)
from tenfold.study.plan.serve import ServePlanResult
from tenfold.study.plan.train import TrainPlanResult

STEPS: dict[StepName, str] = {
    "none": "none",
    "family-changes": "different layout",
    "gpus-double": "2x GPUs",
    "nothing-fits": "no plan",
}
INPUTS: dict[bool, dict[DriverName, str]] = {
    False: {
        "model": "model",
        "data": "tokens",
        "concurrency": "concurrent runs",
        "latency": "deadline",
        "cost": "budget",
    },
    True: {
        "model": "model",
        "data": "tokens per request",
        "concurrency": "requests/s",
        "latency": "latency targets",
        "cost": "budget",
    },
}
"""What each driver is called on screen, for a training run and for a service."""
COLUMNS = ("input", "still OK at", "changes at", "change", "why")


def run_train_sensitivity(planned: TrainPlanResult, concurrent_runs: int) -> SensitivityAnswer:
    """Return what changes a training plan, with progress on standard error."""
    with _progress() as begun:
        return train_sensitivity(
            planned.request, planned.chosen.target, concurrent_runs=concurrent_runs, begun=begun
        )


def run_serve_sensitivity(
    planned: ServePlanResult, usd_per_hour_max: float | None
) -> SensitivityAnswer:
    """Return what changes a serving plan, with progress on standard error."""
    with _progress() as begun:
        return serve_sensitivity(
            planned.request, planned.targets, usd_per_hour_max=usd_per_hour_max, begun=begun
        )


@contextmanager
def _progress() -> Generator[Callable[[DriverName], None]]:
    """Show which driver is being tried; only on a terminal, and cleared at the end."""
    drivers: tuple[DriverName, ...] = get_args(DriverName)
    console = ScreenConsole(stderr=True)
    words = TextColumn("{task.description}")
    count = TextColumn("{task.completed:.0f} of {task.total:.0f}")
    columns = (SpinnerColumn(), words, count, TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task("sensitivity", total=len(drivers))

        def begun(driver: DriverName) -> None:
            done = drivers.index(driver)
            progress.update(task, description=f"sensitivity to {driver}", completed=done)

        yield begun


def show_sensitivity(answer: SensitivityAnswer, *, service: bool) -> None:
    """Print the drivers as a table, the one that changes the plan first on top."""
    show("", Text(answer.sentence, style="bold"))
    if answer.drivers:
        show(table("", COLUMNS, _rows(answer, service)))


def sensitivity_section(answer: SensitivityAnswer, *, service: bool) -> Section:
    """Return the drivers as a section of a report."""
    sentence = f"{answer.sentence[:1].upper()}{answer.sentence[1:]}."
    body = prose_html(sentence)
    if answer.drivers:
        trigger = None if answer.trigger is None else 0
        body += table_html(COLUMNS, _rows(answer, service), best=trigger)
    return Section("Sensitivity", body)


def _rows(answer: SensitivityAnswer, service: bool) -> list[list[str]]:
    return [_row(one, INPUTS[service][one.driver]) for one in answer.drivers]


def _row(one: Driver, name: str) -> list[str]:
    return [
        name,
        _times(one.driver, one.holds_to) if one.stated else "-",
        _times(one.driver, one.factor),
        STEPS[one.step] if one.factor is not None else "",
        one.sentence,
    ]


def _times(driver: DriverName, factor: float | None) -> str:
    if factor is None:
        return ""
    return f"{1 / factor if driver in LOWERED else factor:.3g}x"
