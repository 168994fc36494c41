"""`tenfold grow`: what breaks first when demand or the fleet grows, and how to fix it."""

import sys
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.errors import Exit
from tenfold.cli.grow.json import document, meets_requirement
from tenfold.cli.grow.page import grow_page
from tenfold.cli.grow.progress import counting, noting
from tenfold.cli.grow.render import show_grow
from tenfold.cli.output import print_json, print_note
from tenfold.files.core.write import open_new_file, write_new_file
from tenfold.model.errors import InputError
from tenfold.model.growth.growth import Axis
from tenfold.study.grow.analyse import Analysis, analyse_growth
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.fixes.apply import grow_path, grown_files
from tenfold.study.grow.inputs import MIX_LOAD, GrowFiles, GrowInputs, grow_inputs
from tenfold.study.grow.question import GrowQuestion, check_question

app = App(name="grow", help_format="plaintext", default_parameter=Parameter(show_default=False))

FleetFile = Annotated[Path, Parameter(help="Fleet file")]
Jobs = Annotated[
    Path | None, Parameter(help="Job history: a job table, a public trace, or a state directory")
]
Mix = Annotated[str, Parameter(help="Workload mix to use instead of a job history")]
Load = Annotated[
    float | None,
    Parameter(
        help="Share of the fleet that --mix uses today (default: 0.6)",
        validator=validators.Number(gt=0, lte=100),
    ),
]
RanUnder = Annotated[
    str, Parameter(help="Policy that the jobs ran under, or a slurm.conf (default: tenfold)")
]
Profiles = Annotated[
    Path | None,
    Parameter(
        help="Profile file: how much network, storage and power each job uses, and how it scales"
    ),
]
GrowFile = Annotated[
    Path | None,
    Parameter(
        name="--grow",
        help="Grow file: limits, controllers, services, staff, lead times and growth rate",
    ),
]
Measured = Annotated[Path | None, Parameter(help="CSV file with measured usage per growth factor")]
Timed = Annotated[
    Path | None,
    Parameter(
        name="--calibrate",
        help="Measured training runs to calibrate job scaling with, as JSON Lines",
    ),
]
Along = Annotated[Axis, Parameter(help="What grows; see above (default: all)")]
To = Annotated[
    str,
    Parameter(
        help="Growth factors to report; limits are checked up to the largest (default: 2,5,10)"
    ),
]
Require = Annotated[
    str | None,
    Parameter(help="Exit with status 1 unless today's fleet is OK up to this factor, such as 2x"),
]
AllowUnknown = Annotated[
    bool,
    Parameter(negative="", help="Let --require pass even if some limits could not be checked"),
]
Failures = Annotated[str | None, Parameter(help="Failure preset or fault trace")]
CountAssumed = Annotated[
    bool, Parameter(negative="", help="Also rank limits that are based on assumed values")
]
Seeds = Annotated[
    int,
    Parameter(
        help="Number of random seeds for simulations (default: 5)",
        validator=validators.Number(gte=1, lte=100),
    ),
]
Seed = Annotated[
    int, Parameter(help="First random seed; the same seed gives the same result (default: 0)")
]
Apply = Annotated[
    int | None,
    Parameter(
        help="Apply the first N fixes and write the resulting fleet; needs --out",
        validator=validators.Number(gte=1),
    ),
]
Out = Annotated[
    Path | None,
    Parameter(
        name=("--out", "-o"),
        help="Fleet file to write with --apply; its grow file is written next to it",
    ),
]
Html = Annotated[Path | None, Parameter(help="Also write an HTML report to this file")]


@app.default
def grow_command(
    fleet: FleetFile,
    *,
    jobs: Jobs = None,
    mix: Mix = "",
    load: Load = None,
    policy: RanUnder = "tenfold",
    profiles: Profiles = None,
    grow: GrowFile = None,
    measured: Measured = None,
    timed: Timed = None,
    axis: Along = "all",
    to: To = "2,5,10",
    require: Require = None,
    allow_unknown: AllowUnknown = False,
    failures: Failures = None,
    count_assumed: CountAssumed = False,
    seed: Seed = 0,
    seeds: Seeds = 5,
    facts: Facts = None,
    apply: Apply = None,
    out: Out = None,
    html: Html = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find out what breaks first at 2x, 5x and 10x."""
    _check_options(allow_unknown, require, load, mix)
    question = GrowQuestion(
        axis=axis,
        to=tuple(_factor(word, "--to") for word in to.split(",")),
        seed=seed,
        seeds=seeds,
        failures=failures,
        require=None if require is None else _factor(require, "--require"),
        allow_unknown=allow_unknown,
        count_assumed=count_assumed,
    )
    files = GrowFiles(
        fleet=fleet,
        jobs=jobs,
        mix=mix,
        load=MIX_LOAD if load is None else load,
        policy=policy,
        failures=failures or "none",
        profiles=profiles,
        grow=grow,
        measured=measured,
        facts=facts,
        seed=seed,
    )
    if (apply is None) is not (out is None):
        raise InputError(
            "needs-apply-and-out",
            "`--apply` and `--out` are only used together",
            "write `--apply 1 --out grown.toml`",
            field="--out" if apply is None else "--apply",
        )
    inputs, written = _with_timed_runs(grow_inputs(files), timed), None
    if apply is not None and out is not None:
        written = Written(files, apply, out, force)
    _answer(check_question(question), inputs, html, force, as_json, written)


def _check_options(allow_unknown: bool, require: str | None, load: float | None, mix: str) -> None:
    if allow_unknown and require is None:
        raise InputError(
            "needs-require",
            "`--allow-unknown` has no effect without `--require`",
            "add `--require 2x`, or leave out `--allow-unknown`",
            field="--allow-unknown",
        )
    if load is not None and not mix:
        raise InputError(
            "needs-mix",
            "`--load` has no effect without `--mix`",
            "add `--mix NAME`, or leave out `--load`",
            field="--load",
        )


def _with_timed_runs(inputs: GrowInputs, timed: Path | None) -> GrowInputs:
    if timed is None:
        return inputs
    # Timed runs are rare, and the code that reads them is slow to import.
    from tenfold.study.grow.observed import read_observed  # noqa: PLC0415

    return read_observed(inputs, timed)


class Written(NamedTuple):
    """What to write with `--apply`: how many fixes, and where."""

    files: GrowFiles
    fixes: int
    out: Path
    force: bool


def _answer(
    question: GrowQuestion,
    inputs: GrowInputs,
    html: Path | None,
    force: bool,
    as_json: bool,
    written: Written | None,
) -> None:
    if html is None:
        found = _analysed(inputs, question)
    else:
        # Open the file first: an analysis may take a minute and must not be lost to a bad path.
        with open_new_file(html, force=force) as page:
            found = _analysed(inputs, question)
            page.write(grow_page(found.answer, question).encode())
        print_note(f"report written to {html}")
    if written is not None:
        _write(found, written)
    _show(found.answer, question, as_json)


def _write(found: Analysis, written: Written) -> None:
    """Write the fleet with some of the fixes, and what to run to see that it is as predicted."""
    fixes = sum(row.relief is not None for row in found.answer.rows)
    if written.fixes > fixes:
        raise InputError(
            "no-such-fix",
            f"`--apply {written.fixes}`: there are only {fixes} to apply",
            f"use `--apply {fixes}` or less" if fixes else "see why with `tenfold grow`",
            field="--apply",
        )
    state, out = found.states[written.fixes], written.out
    files = grown_files(state, written.files.fleet, written.files.grow, out)
    write_new_file(out, files.fleet, force=written.force)
    write_new_file(grow_path(out), files.grow, force=written.force)
    reached = found.answer.rows[written.fixes - 1].k_after
    upto = "every factor requested" if reached is None else f"{reached:.2f}x"
    print_note(f"{out} and {grow_path(out)} written: OK up to {upto}")
    print_note(
        f"read them back with `tenfold grow {out} --grow {grow_path(out)}` and the same options"
    )


def _analysed(inputs: GrowInputs, question: GrowQuestion) -> Analysis:
    if not inputs.jobs:
        return analyse_growth(inputs, question)
    if not sys.stderr.isatty():
        return analyse_growth(inputs, question, noting("simulation runs"))
    with counting("simulation runs") as done:
        return analyse_growth(inputs, question, done)


def _show(answer: GrowAnswer, question: GrowQuestion, as_json: bool) -> None:
    if as_json:
        print_json(document(answer, question))
    else:
        show_grow(answer, question)
    if not meets_requirement(answer, question):
        raise Exit(1)


def _factor(word: str, option: str) -> float:
    """Parse a factor such as `2`, `2x` or `1.5`."""
    text = word.strip().lower()
    try:
        return float(text[:-1] if text.endswith("x") else text)
    except ValueError:
        raise InputError(
            "not-a-factor",
            f"`{option}`: `{word}` is not a growth factor",
            "write `2x` or `2`, or several as `2,5,10`",
        ) from None
