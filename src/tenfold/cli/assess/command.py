"""`tenfold assess`: one screen and one page about a cluster, from what its users may read."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.assess.page import assess_page
from tenfold.cli.assess.render import show_assessment
from tenfold.cli.output import print_json, print_note
from tenfold.clock.wall import now_ms
from tenfold.compose.fleet import load_facts
from tenfold.files.core.write import open_new_file, write_new_file
from tenfold.files.slurm.saved import SavedOutput, is_saved_accounting, read_saved
from tenfold.live.slurm.attach.gather import AccountingLimits, gather, slurm_environment
from tenfold.live.slurm.commands import CommandCost, SlurmCommands
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.study.assess.assess import Assessed, assess, starts_of
from tenfold.study.assess.evidence import Evidence, from_saved, from_slurm, from_trace

app = App(name="assess", help_format="plaintext", default_parameter=Parameter(show_default=False))

PAGE = Path("tenfold-assess.html")
Page = Annotated[
    Path, Parameter(name=("--html", "-o"), help=f"HTML page to write (default: {PAGE})")
]
NoPage = Annotated[bool, Parameter(negative="", help="Do not write the HTML page")]
Hidden = Annotated[
    bool,
    Parameter(
        name=("--anonymize", "--anonymous"),
        negative="",
        help="Hash user, account and cluster names",
    ),
]
PolicyNamed = Annotated[
    str | None,
    Parameter(help="Policy that the jobs ran under: a name, a policy file or a slurm.conf"),
]
Runs = Annotated[
    Path | None,
    Parameter(help="Also write each job's simulated start time, as CSV"),
]
Days = Annotated[
    float,
    Parameter(
        help="Days of accounting to read (default: 90)", validator=validators.Number(gt=0, lte=3650)
    ),
]
Seconds = Annotated[
    float,
    Parameter(
        help="Time limit for reading accounting, in seconds (default: 40)",
        validator=validators.Number(gt=0, lte=3600),
    ),
]
Source = Annotated[
    Path, Parameter(help="Directory of saved Slurm output, `sacct` output, or a public trace")
]
TraceNamed = Annotated[
    str, Parameter(help="Which trace to read, if the file has several (column `trace`)")
]
FleetFile = Annotated[
    Path | None, Parameter(help="Fleet file (default: from the saved nodes, or from the jobs)")
]


@app.command(name="slurm")
def slurm_command(
    *,
    days: Days = 90.0,
    seconds: Seconds = 40.0,
    policy: PolicyNamed = None,
    html: Page = PAGE,
    no_html: NoPage = False,
    anonymize: Hidden = False,
    runs: Runs = None,
    force: Force = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Assess the Slurm cluster of this login node, as an ordinary user and without changing it."""
    commands = SlurmCommands(slurm_environment())
    with _page(None if no_html else html, force=force) as write, _progress() as done:
        limits = AccountingLimits(days=days, seconds=seconds)
        output = gather(commands, now_ms() / 1_000, limits, done)
        evidence = from_slurm(output, load_facts(facts), policy)
        found = assess(evidence, hidden=anonymize, done=done)
        write(found, evidence)
    _finish(found, runs, force=force, as_json=as_json)
    print_note(cost_text(output.cost))


@app.command(name="trace")
def trace_command(
    source: Source,
    *,
    trace: TraceNamed = "",
    fleet: FleetFile = None,
    policy: PolicyNamed = None,
    html: Page = PAGE,
    no_html: NoPage = False,
    anonymize: Hidden = False,
    runs: Runs = None,
    force: Force = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Assess a cluster from saved Slurm output or from a public trace."""
    with _page(None if no_html else html, force=force) as write, _progress() as done:
        done("reading the job history")
        evidence = _read(source, trace, (fleet, policy), load_facts(facts))
        found = assess(evidence, hidden=anonymize, done=done)
        write(found, evidence)
    _finish(found, runs, force=force, as_json=as_json)


def _read(
    source: Path, trace: str, stated: tuple[Path | None, str | None], catalogue: Catalogue
) -> Evidence:
    fleet, policy = stated
    if trace and (source.is_dir() or (source.exists() and is_saved_accounting(source))):
        raise InputError(
            "no-such-trace",
            f"`{source}` is output of Slurm, so it has no trace `{trace}`",
            "leave out `--trace`",
            field="--trace",
        )
    if source.is_dir():
        return from_saved(read_saved(source), source, fleet, catalogue, policy)
    if not source.exists():
        raise InputError(
            "no-such-file",
            f"`{source}` does not exist",
            "give a folder of saved Slurm output, or a trace",
            file=str(source),
        )
    if is_saved_accounting(source):
        return from_saved(SavedOutput(accounting=[source]), source, fleet, catalogue, policy)
    return from_trace(source, fleet, catalogue, policy, trace)


def cost_text(cost: CommandCost) -> str:
    """Return what the commands cost, in a sentence."""
    return (
        f"ran {cost.calls} Slurm commands in {cost.seconds:.1f} s and read "
        f"{cost.bytes_read / 1e6:.1f} MB"
    )


Writer = Callable[[Assessed, Evidence], None]


@contextmanager
def _page(path: Path | None, *, force: bool) -> Generator[Writer]:
    """Open the page first: an assessment takes a minute and must not be lost to a bad path."""
    opened = nullcontext() if path is None else open_new_file(path, force=force)
    with opened as stream:

        def write(found: Assessed, evidence: Evidence) -> None:
            if stream is not None:
                stream.write(assess_page(found.assessment).encode())

        yield write
    if path is not None:
        print_note(f"report written to {path}")


@contextmanager
def _progress() -> Generator[Callable[[str], None]]:
    """Yield a function that shows what is being done, on a terminal only its newest word."""
    if sys.stderr.isatty():
        from tenfold.cli.screen import ScreenConsole  # noqa: PLC0415

        with ScreenConsole(stderr=True).status("starting") as status:
            yield status.update
        return
    last: list[str] = []

    def say(text: str) -> None:
        phase = text.partition(":")[0]
        if [phase] != last:
            last[:] = [phase]
            print_note(phase)

    yield say


def _finish(found: Assessed, runs: Path | None, *, force: bool, as_json: bool) -> None:
    if runs is not None:
        rows = [",".join(map(str, row)) for row in starts_of(found.simulated)]
        head = "half,job,arrived_ms,start_ms,wait_ms"
        write_new_file(runs, "\n".join([head, *rows, ""]), force=force)
    print_json(found.assessment) if as_json else show_assessment(found.assessment)
