"""`tenfold attach`: keep a journal of a cluster that another scheduler runs."""

import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.attach.render import cost_sentence, show_report, show_status, shown_reading
from tenfold.cli.output import print_json, print_note, show
from tenfold.cli.up.state_dir import StateDirOption, lock_state_dir
from tenfold.client.endpoint import find_state_dir
from tenfold.compose.fleet import load_facts
from tenfold.compose.inputs import policy_of
from tenfold.files.slurm.saved import read_saved
from tenfold.files.slurm.settings import PARTITION_COMMAND, read_partitions
from tenfold.live.slurm.attach.gather import AccountingLimits, slurm_environment
from tenfold.live.slurm.attach.orders import SlurmOrders
from tenfold.live.slurm.attach.poll import SlurmPoller
from tenfold.live.slurm.commands import SlurmCommands
from tenfold.model.errors import InputError, NoAnswer, Refused, Unreachable
from tenfold.study.attach.act import ActScope
from tenfold.study.attach.readings import Readings
from tenfold.study.attach.recommend import read_recommendations, report_of
from tenfold.study.attach.recorder import (
    Acting,
    Attachment,
    last_reading_s,
    read_status,
    record_saved,
)
from tenfold.study.replay.records import open_record

app = App(name="attach", help_format="plaintext", default_parameter=Parameter(show_default=False))

FOLDER = "attached"
"""The folder in the state directory if none is named: a control plane has its own journal."""
SAY_EVERY_S = 60.0
"""A reading without news is printed at least this often."""
Interval = Annotated[
    float,
    Parameter(
        help="Minimum seconds between polls (default: 10); longer if a poll is expensive",
        validator=validators.Number(gte=1, lte=3600),
    ),
]
Days = Annotated[
    float,
    Parameter(
        help="Days of accounting to start with (default: 7)",
        validator=validators.Number(gte=0, lte=3650),
    ),
]
Saved = Annotated[
    Path | None,
    Parameter(
        name="--from", help="Read saved Slurm output from this directory once, instead of polling"
    ),
]
StartWithin = Annotated[
    float,
    Parameter(
        help="Seconds that Slurm has to start a released job on its nodes (default: 60)",
        validator=validators.Number(gte=5, lte=3600),
    ),
]
PolicyNamed = Annotated[
    str | None,
    Parameter(
        help="slurm.conf with the scheduling settings of the cluster (default: read from Slurm)"
    ),
]


@app.command(name="slurm")
def slurm_command(
    *,
    observe: Annotated[
        bool, Parameter(negative="", help="Only record; change nothing (default)")
    ] = False,
    recommend: Annotated[
        bool,
        Parameter(
            negative="",
            help="Also record which jobs the policy --under would have started, for `tenfold "
            "attach report`",
        ),
    ] = False,
    act: Annotated[
        bool,
        Parameter(
            negative="",
            help="Also place held jobs in the partitions and accounts of --partition and --account",
        ),
    ] = False,
    under: Annotated[
        str | None,
        Parameter(
            help="Policy of --recommend and --act: a name or a policy file (default: tenfold)"
        ),
    ] = None,
    partition: Annotated[
        list[str] | None,
        Parameter(help="Partition whose held jobs --act places; repeatable", negative=""),
    ] = None,
    account: Annotated[
        list[str] | None,
        Parameter(help="Account whose held jobs --act places; repeatable", negative=""),
    ] = None,
    start_within: StartWithin = 60.0,
    once: Annotated[bool, Parameter(negative="", help="Poll once and exit")] = False,
    source: Saved = None,
    state_dir: StateDirOption = None,
    interval: Interval = 10.0,
    days: Days = 7.0,
    policy: PolicyNamed = None,
    facts: Facts = None,
) -> None:
    """Record the nodes, queue and accounting of a Slurm cluster as a journal.

    Runs until Ctrl-C, as an ordinary user, and changes nothing unless --act is given. After a
    restart it continues where the journal ends.
    """
    modes = {"--observe": observe, "--recommend": recommend, "--act": act}
    mode = _mode(modes, under=under, source=source)
    scope = ActScope(
        partitions=tuple(partition or ()),
        accounts=tuple(account or ()),
        start_within_s=start_within,
    )
    _check_scope(scope, mode)
    folder = attached_folder(state_dir)
    readings = Readings(load_facts(facts), None if policy is None else policy_of(policy))
    with lock_state_dir(folder):
        if source is not None:
            _read_files(folder, source, readings, policy)
            return
        commands = SlurmCommands(slurm_environment())
        _check_partitions(commands, scope)
        poller = SlurmPoller(commands, last_reading_s(folder))
        limits = AccountingLimits(days=days, seconds=120.0)
        acting = _acting(mode, under, scope, SlurmOrders(commands))
        attachment = Attachment(folder, poller, readings, limits, interval, acting)
        try:
            _run(attachment, once=once)
        finally:
            attachment.close()
    print_note(cost_sentence(attachment.status.cost))


@app.command(name="status")
def status_command(*, state_dir: StateDirOption = None, as_json: Json = False) -> None:
    """Show what was read from the attached cluster, and the load on its controller."""
    folder = attached_folder(state_dir)
    status = read_status(folder)
    print_json(status) if as_json else show_status(folder, status)


@app.command(name="report")
def report_command(*, state_dir: StateDirOption = None, as_json: Json = False) -> None:
    """Compare the starts predicted by --recommend with what happened."""
    folder = attached_folder(state_dir)
    read_status(folder)
    records = read_recommendations(folder)
    if not records:
        raise NoAnswer(
            "no-recommendations",
            f"`{folder}` has no recommendations",
            "run `tenfold attach slurm --recommend` for a while",
        )
    bundle, _ = open_record(str(folder))
    found = report_of(bundle, records)
    print_json(found) if as_json else show_report(found)


def _mode(modes: Mapping[str, bool], *, under: str | None, source: Path | None) -> str:
    """Return the mode that was chosen; raise if there are two, or --from with one that acts."""
    chosen = [name for name, is_chosen in modes.items() if is_chosen]
    mode = chosen[-1] if chosen else "--observe"
    if mode == "--observe":
        if under is not None:
            raise InputError(
                "two-questions",
                "--under needs --recommend or --act",
                "add --recommend",
            )
        return mode
    if len(chosen) > 1 or source is not None:
        other = chosen[0] if len(chosen) > 1 else "--from"
        raise InputError(
            "two-questions",
            f"{other} and {mode} cannot be combined",
            f"{mode} needs a live cluster: drop `{other}` or `{mode}`",
        )
    return mode


def _check_scope(scope: ActScope, mode: str) -> None:
    is_named = bool(scope.partitions or scope.accounts)
    if mode == "--act" and not is_named:
        raise InputError(
            "no-scope",
            "--act needs a partition or an account",
            "name what it may change, such as --partition gpu; nothing else is changed",
        )
    if mode != "--act" and is_named:
        name = "--partition" if scope.partitions else "--account"
        raise InputError("two-questions", f"{name} needs --act", "add --act, or leave it out")


def _check_partitions(commands: SlurmCommands, scope: ActScope) -> None:
    """Raise if a partition to act on is not in Slurm: nothing would ever be placed."""
    if not scope.partitions:
        return
    known = [one.name for one in read_partitions(commands.run(*PARTITION_COMMAND))]
    for name in scope.partitions:
        if name not in known:
            raise InputError(
                "no-such-partition",
                f"--partition `{name}` is no partition of this cluster",
                f"use one of {', '.join(known)}",
                field="--partition",
            )


def _acting(mode: str, under: str | None, scope: ActScope, orders: SlurmOrders) -> Acting:
    if mode == "--observe":
        return Acting()
    policy = policy_of(under or "tenfold")
    if mode == "--recommend":
        return Acting(recommends=policy)
    return Acting(places=policy, scope=scope, orders=orders)


def attached_folder(stated: Path | None) -> Path:
    """Return the folder of an attached cluster."""
    return stated.expanduser() if stated is not None else find_state_dir() / FOLDER


def _read_files(folder: Path, source: Path, readings: Readings, policy: str | None) -> None:
    saved = read_saved(source)
    reading = readings.of_saved(saved, source)
    known_s = last_reading_s(folder)
    if known_s is not None and reading.now_s < known_s:
        raise Refused(
            "older-than-journal",
            f"the files in `{source}` are older than the journal in `{folder}`",
            "read older files into a separate directory, with --state-dir",
        )
    chosen = readings.policy_of(saved.config, saved.partitions)
    added = record_saved(folder, reading, readings, chosen)
    show(f"{added:,} events added to {folder}")


def _run(attachment: Attachment, *, once: bool) -> None:
    with _stopped() as stop:
        said: tuple[int, float] = (-1, 0.0)
        while not stop.is_set():
            try:
                reading = attachment.read(print_note)
            except Unreachable as error:
                if once or not attachment.is_begun:
                    raise
                attachment.failed(error)
                print_note(f"{error.message}; trying again in {attachment.status.pause_s:.0f} s")
            else:
                events, at_s = attachment.status.events, reading.now_s
                if events != said[0] or at_s - said[1] >= SAY_EVERY_S:
                    print_note(shown_reading(attachment, reading))
                    said = events, at_s
            if once:
                return
            stop.wait(attachment.status.pause_s)


@contextmanager
def _stopped() -> Generator[Event, None, None]:
    """Yield an event that Ctrl-C or SIGTERM sets, so that a reading is finished first."""
    stop = Event()

    def end(number: int, frame: object) -> None:
        stop.set()

    before = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
