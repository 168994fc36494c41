"""`tenfold replay`: verify a recorded run, try another policy on it, or explain one job."""

from os import environ
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import Force, Json
from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json, print_note, show
from tenfold.cli.replay.render import (
    calibration_json,
    diff_json,
    show_calibration,
    show_diff,
    show_story,
    show_verified,
    verified_json,
)
from tenfold.client.endpoint import find_state_dir
from tenfold.clock.wall import now_ms
from tenfold.compose.inputs import policy_of
from tenfold.compose.policy_fleet import policy_for_record
from tenfold.files.records.replay_bundle import Bundle
from tenfold.model.errors import InputError
from tenfold.report.figures import count
from tenfold.study.replay.bundle import explain_job, policy_names, verify
from tenfold.study.replay.calibration import calibrate
from tenfold.study.replay.diff import replay_diff
from tenfold.study.replay.records import keep_record, open_record, write_record
from tenfold.study.replay.rerun import rerun

app = App(
    name="replay",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)

JOURNAL = "TENFOLD_JOURNAL"
"""Environment variable with the database of `tenfold up --journal`."""

Record = Annotated[
    str | None,
    Parameter(
        help="Bundle, state directory, journal file or database URL "
        f"(default: ${JOURNAL}, or else the state directory)"
    ),
]
PolicyNamed = Annotated[
    str | None,
    Parameter(help="Rerun the same jobs under this policy (name, policy file or slurm.conf)"),
]
FleetFile = Annotated[
    Path | None, Parameter(help="Fleet file with the teams and quotas of a `governed` policy")
]
Explained = Annotated[
    str | None, Parameter(help="Show every state change of this job, with its reason")
]
ExportTo = Annotated[Path | None, Parameter(help="Write the run to a bundle (.jsonl or .jsonl.gz)")]
Into = Annotated[str, Parameter(help="Write the run to a new journal (file or database URL)")]


@app.default
def replay_command(
    record: Record = None,
    *,
    policy: PolicyNamed = None,
    fleet: FleetFile = None,
    explain: Explained = None,
    export: ExportTo = None,
    into: Into = "",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Replay a recorded run and explain its decisions.

    If the recording is of another scheduler, its policy is simulated and the output shows how far
    simulated waits are from recorded ones. If the error is above 15%, comparisons are marked as
    uncalibrated.
    """
    _check_one_action(policy, explain, export, into)
    named = record or environ.get(JOURNAL) or str(find_state_dir())
    bundle, notes = open_record(named)
    for note in notes:
        print_note(note)
    if explain is not None:
        history = explain_job(bundle, explain)
        print_json(history) if as_json else show_story(history)
    elif policy is not None:
        _try_policy(bundle, policy, fleet, as_json=as_json)
    elif export is not None:
        write_record(bundle, export, force=force)
        _print_written(bundle, str(export), as_json=as_json)
    elif into:
        keep_record(bundle, into, now_ms())
        _print_written(bundle, into, as_json=as_json)
    else:
        _verify(bundle, named, as_json=as_json)


def _check_one_action(
    policy: str | None, explain: str | None, export: Path | None, into: str
) -> None:
    flags = {
        "--policy": policy is not None,
        "--explain": explain is not None,
        "--export": export is not None,
        "--into": bool(into),
    }
    names = [name for name, is_given in flags.items() if is_given]
    if len(names) > 1:
        raise InputError(
            "two-questions",
            f"{' and '.join(f'`{name}`' for name in names)} cannot be combined",
            "run the command once for each",
        )


def _verify(bundle: Bundle, named: str, *, as_json: bool) -> None:
    found = calibrate(bundle)
    if found is not None:
        print_json(calibration_json(found)) if as_json else show_calibration(named, found)
        if not found.calibrated:
            raise Exit(1)
        return
    check = verify(bundle)
    print_json(verified_json(check)) if as_json else show_verified(named, check)
    if not check.same:
        raise Exit(1)


def _print_written(bundle: Bundle, where: str, *, as_json: bool) -> None:
    end = bundle.end
    if as_json:
        print_json({"file": where, "events": end.events, "cycles": end.cycles, "fleet": end.fleet})
    else:
        show(f"wrote {count(end.events, 'event')} and {count(end.cycles, 'cycle')} to {where}")


def _try_policy(bundle: Bundle, named: str, fleet: Path | None, *, as_json: bool) -> None:
    chosen, notes = policy_for_record(policy_of(named), bundle.header.policy, fleet)
    found = calibrate(bundle)
    again = rerun(bundle, chosen)
    for note in (*notes, *again.notes):
        print_note(note)
    diff = replay_diff(again.recorded, again.again, again.gpus, again.slack_ms)
    before = ", then ".join(policy_names(bundle))
    if as_json:
        print_json(diff_json(diff, before, chosen.name, found))
    else:
        if found is not None:
            show(found.sentence, "")
        show_diff(diff, before, chosen.name)
