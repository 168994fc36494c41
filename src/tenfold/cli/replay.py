"""`tenfold replay`: verify a recorded run, try another policy on it, or explain one job."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.errors import Done
from tenfold.cli.output import print_json
from tenfold.cli.replay_show import diff_json, show_diff, show_story, show_verified, verified_json
from tenfold.compose.joining import join_record
from tenfold.compose.replaying import story_of, verify
from tenfold.compose.rerun import rerun
from tenfold.compose.sim_inputs import policy_of
from tenfold.files.replay_bundle import read_bundle
from tenfold.model.errors import InputError
from tenfold.study.replay_diff import replay_diff

app = App(
    name="replay",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@app.default
def replay_command(
    bundle: Annotated[Path, Parameter(help="A run that `sim run --bundle` wrote.")],
    *,
    policy: Annotated[
        str | None,
        Parameter(help="Run the same work under this policy: a name, a file or a slurm.conf."),
    ] = None,
    fleet: Annotated[
        Path | None, Parameter(help="Fleet file with the teams of --policy governed.")
    ] = None,
    explain: Annotated[
        str | None, Parameter(help="Tell the story of this job, each stage with its reason.")
    ] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")] = False,
) -> None:
    """Replay a recorded run: every decision must come out as it was recorded.

    The first decision that differs ends the replay with status 1. With --policy the same
    submissions, work and faults are run under another policy, and what would have differed
    is listed; --fleet tells a governed policy who the teams are. With --explain one job's
    story is told instead.
    """
    if policy is not None and explain is not None:
        raise InputError(
            "two-questions",
            "--policy and --explain ask two things at once",
            "ask one after the other",
        )
    if explain is not None:
        story = story_of(read_bundle(bundle), explain)
        print_json(story) if as_json else show_story(story)
        return
    if policy is not None:
        _try_policy(bundle, policy, fleet, as_json=as_json)
        return
    verified = verify(read_bundle(bundle))
    print_json(verified_json(verified)) if as_json else show_verified(bundle, verified)
    if not verified.same:
        raise Done(1)


def _try_policy(path: Path, named: str, fleet: Path | None, *, as_json: bool) -> None:
    chosen = policy_of(named)
    bundle = read_bundle(path)
    chosen, notes = join_record(chosen, bundle.header.policy, fleet)
    again = rerun(bundle, chosen)
    for note in (*notes, *again.notes):
        sys.stderr.write(f"note: {note}\n")
    diff = replay_diff(again.recorded, again.again, again.gpus)
    before = bundle.header.policy.name
    if as_json:
        print_json(diff_json(diff, before, chosen.name))
    else:
        show_diff(diff, before, chosen.name)
