"""`tenfold service` against the running control plane."""

import re
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from sys import stderr
from time import monotonic, sleep
from typing import Literal

from msgspec.structs import replace

from tenfold.cli.errors import Exit
from tenfold.cli.job.origin import origin_here
from tenfold.cli.output import complain, print_json, print_log, show
from tenfold.cli.service.render import show_service as show_one
from tenfold.cli.service.render import show_services, summary_of
from tenfold.client.client import Client
from tenfold.client.problems import FaultyRequest
from tenfold.files.services.service import faults_in_service, read_service
from tenfold.model.api.jobs import Job
from tenfold.model.api.services import Service
from tenfold.model.errors import InputError, Unreachable
from tenfold.report.figures import count

POLL_S = 0.5
SAY_S = 10.0
"""Between two reports of progress where standard error is no terminal."""
FAILED_MOST = 3
"""Failures in a row after which `--wait` gives up."""
FAILED_JOBS_READ = 100
"""Failed jobs among which the last failed replica is looked for."""
Verb = Literal["canary", "promote", "rollback", "remove"]


def deploy(
    file: Path, *, model: str, new_revision: bool, wait_s: float | None, as_json: bool
) -> None:
    """Deploy a service file, and maybe wait until it is ready."""
    body = {"origin": origin_here(), **read_service(file, model)}
    with Client() as client:
        try:
            made = client.deploy(new_revision=new_revision, **body)
        except FaultyRequest as error:
            if not error.faults:
                raise
            raise faults_in_service(file, error.faults) from None
        found = made if wait_s is None else _wait(client, made, wait_s)
        is_missed = wait_s is not None and not _is_ready(found, made)
        failed = _last_failed(client, found) if is_missed else None
    if as_json:
        print_json(found)
    else:
        show(f"deployed `{found.name}`: {summary_of(found)}")
    if is_missed:
        _explain(found, failed)
        raise Exit(1)


def list_services(*, as_json: bool) -> None:
    """Print all services."""
    with Client() as client:
        found = client.services()
    print_json(found) if as_json else show_services(found)


def show_service(name: str, *, as_json: bool) -> None:
    """Print one service."""
    with Client() as client:
        found = client.service(name)
    print_json(found) if as_json else show_one(found)


def scale(
    name: str, replicas: int | None, least: int | None, most: int | None, *, as_json: bool
) -> None:
    """Set the number of replicas."""
    with Client() as client:
        if replicas is not None:
            least = most = replicas
        if least is None or most is None:
            now = client.service(name)
            least = now.replicas_min if least is None else least
            most = max(now.replicas_max, least) if most is None else most
        found = client.scale_service(name, replicas_min=least, replicas_max=most)
    print_json(found) if as_json else show(f"`{name}`: {summary_of(found)}")


def change(verb: Verb, name: str, weight: float = 0.0, *, as_json: bool) -> None:
    """Change a rollout, or remove a service."""
    with Client() as client:
        calls: Mapping[Verb, Callable[[], Service]] = {
            "canary": lambda: client.weigh_canary(name, weight),
            "promote": lambda: client.promote_service(name),
            "rollback": lambda: client.roll_back_service(name),
            "remove": lambda: client.remove_service(name),
        }
        found = calls[verb]()
    print_json(found) if as_json else show(f"`{name}`: {summary_of(found)}")


def logs(name: str, replica: str | None, lines: int, *, follow: bool, as_json: bool) -> None:
    """Print the end of the logs of replicas."""
    with Client() as client:
        known = [one.id for one in client.service(name).replicas]
        if replica is not None and replica not in known:
            raise InputError(
                "no-such-replica",
                f"service `{name}` has no replica `{replica}`",
                f"it has {', '.join(f'`{one}`' for one in known) or 'none'}",
            )
        wanted = known if replica is None else [replica]
        if follow and len(wanted) != 1:
            raise InputError(
                "which-replica",
                f"service `{name}` has {len(wanted)} replicas, and --follow streams only one",
                "name it with --replica",
            )
        if follow:
            print_log(client.logs(wanted[0], follow=True, lines=lines))
            return
        texts = {one: client.logs(one, lines=lines) for one in wanted}
    if as_json:
        print_json(texts)
        return
    for one, text in texts.items():
        if len(texts) > 1:
            show(f"==> {one} <==")
        print_log([text])


def _wait(client: Client, made: Service, wait_s: float) -> Service:
    """Return the service once it is ready, has failed, or the time is up."""
    until_s, said, found = monotonic() + wait_s, "", made
    say_s = monotonic() + SAY_S
    while monotonic() < until_s and not _is_ready(found, made) and not _has_failed(found, made):
        sleep(POLL_S)
        try:
            found = client.service(made.name)
        except Unreachable:
            # The control plane may be restarting: replicas go on starting.
            continue
        now = summary_of(found)
        if monotonic() >= say_s or (stderr.isatty() and now != said):
            complain(f"`{found.name}`: {now}")
            said, say_s = now, monotonic() + SAY_S
    return replace(found, spec=made.spec)


def _is_ready(found: Service, made: Service) -> bool:
    """Return whether what was deployed serves: the new revision has begun, with all it needs."""
    wanted = made.canary or made.current
    if found.canary == wanted:
        weight = next((one.weight for one in found.revisions if one.name == wanted), 0.0)
        # By steps, it takes as long as the steps: the first one is enough.
        return weight > 0 and found.canary_weight < 100
    return found.current == wanted and found.ready >= found.target


def _has_failed(found: Service, made: Service) -> bool:
    wanted = made.canary or made.current
    if made.canary and wanted not in (found.canary, found.current):
        return True
    failures = next((one.failures for one in found.revisions if one.name == wanted), 0)
    return failures >= FAILED_MOST and not found.ready


def _last_failed(client: Client, found: Service) -> Job | None:
    """Return the newest replica that failed, if replicas keep failing."""
    if not any(one.failures for one in found.revisions):
        return None
    named = re.compile(rf"{re.escape(found.name)}-\d+")
    newest = islice(client.jobs(team=found.team, state="failed"), FAILED_JOBS_READ)
    return next((one for one in newest if named.fullmatch(one.id)), None)


def _explain(found: Service, failed: Job | None) -> None:
    """Say why a service is not ready."""
    complain(f"error: `{found.name}` is not ready: {summary_of(found)}")
    if found.rolled_back is not None:
        complain(f"rolled back: {found.rolled_back.sentence}")
    for one in found.replicas:
        if one.state != "ready":
            why = f": {one.reason.sentence}" if one.reason is not None else ""
            complain(f"`{one.id}` is {one.state}{why}")
    for one in found.revisions:
        if one.failures:
            complain(f"{count(one.failures, 'replica')} of `{one.name}` failed in a row")
    if failed is None:
        complain(f"hint: `tenfold service logs {found.name}` shows what replicas print")
        return
    complain(f"`{failed.id}`: {failed.reason.sentence}")
    complain(f"hint: `tenfold job logs {failed.id}` shows what it printed")
