"""`tenfold capacity forecast`: how series continue, with intervals."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from cyclopts import Parameter

from tenfold.cli.arguments import AT_LEAST_ONE, Json
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.decide.capacity.forecast import Coverage, Forecast, forecast, too_short
from tenfold.decide.capacity.methods import Floats
from tenfold.files.series.series import read_series
from tenfold.model.errors import NoAnswer
from tenfold.report.figures import count, share

SHOWN_MOST = 24


def forecast_command(
    *,
    file: Annotated[
        Path,
        Parameter(name="--in", help="CSV with the columns id, t and value, or one series per row"),
    ],
    horizon: Annotated[int, Parameter(help="Values to forecast", validator=AT_LEAST_ONE)],
    season: Annotated[
        int | None,
        Parameter(
            help="Values per season: 24 for hourly values with a daily season (default: detected)",
            validator=AT_LEAST_ONE,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Forecast time series, with 80% and 95% prediction intervals.

    Methods are ranked on each series' own history, and the three best are combined. The width of
    the intervals comes from the errors of past forecasts. A few missing values are interpolated.
    Exits with status 1 if a history is too short for the horizon; other series are forecast.
    """
    notes: list[str] = []
    read = {name: np.array(values) for name, values in read_series(file, notes).items()}
    for note in notes:
        print_note(note)
    errors = [too_short(name, len(values), horizon) for name, values in read.items()]
    refused = [error for error in errors if error is not None]
    series = {
        name: values
        for (name, values), error in zip(read.items(), errors, strict=True)
        if error is None
    }
    if series:
        found, covered = forecast(series, horizon, season)
        if as_json:
            print_json(found)
        else:
            _show_all(series, found, covered)
    if refused:
        raise _joined(refused)


def _joined(refused: Sequence[NoAnswer]) -> NoAnswer:
    """Return one error that says how many series are too short."""
    first, others = refused[0], len(refused) - 1
    if not others:
        return first
    more = f"; {others:,} more series {'is' if others == 1 else 'are'} too short"
    return NoAnswer(first.code, first.message + more, first.hint)


def _show_all(
    series: Mapping[str, Floats], found: Mapping[str, Forecast], covered: Sequence[Coverage]
) -> None:
    for name, one in found.items():
        _show(name, one, len(series[name]))
    for coverage in covered:
        show(_coverage_line(coverage))


def _coverage_line(coverage: Coverage) -> str:
    interval = f"{share(coverage.level)} interval"
    if not coverage.by_block:
        return (
            f"{interval}: not tested on the past, for which a history of twice the horizon and "
            "8 values is needed"
        )
    shares = ", ".join(share(one) for one in coverage.by_block)
    return (
        f"{interval}: covers {shares} of past values, from the first to the last quarter of the "
        f"horizon ({count(coverage.values, 'value')})"
    )


def _show(name: str, one: Forecast, values: int) -> None:
    seasons = " and ".join(str(season) for season in one.seasons)
    show(
        f"{name}: {count(values, 'value')}, "
        f"{'season ' + seasons if seasons else 'no season'}; methods: {', '.join(one.methods)}"
    )
    steps = range(min(len(one.mean), SHOWN_MOST))
    columns = ["", ">mean", ">80% interval", ">95% interval"]
    rows = [
        [
            f"+{step + 1}",
            _figure(one.mean[step]),
            f"{_figure(one.lo80[step])} to {_figure(one.hi80[step])}",
            f"{_figure(one.lo95[step])} to {_figure(one.hi95[step])}",
        ]
        for step in steps
    ]
    show("", table("", columns, rows), "")
    if len(one.mean) > SHOWN_MOST:
        show(f"{len(one.mean) - SHOWN_MOST} more with --json")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.3g}"
