"""`tenfold down`: stop the control plane of this machine; its jobs keep running."""

import os
import signal
from contextlib import suppress
from time import monotonic, sleep
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import NOT_NEGATIVE, Json
from tenfold.cli.output import print_json, show
from tenfold.cli.up.state_dir import StateDirOption, stopped_text
from tenfold.client.client import Client
from tenfold.client.endpoint import lock_holder, own_folder, read_address, running_state_dir
from tenfold.model.errors import InputError, NoAnswer, Refused, TenfoldError, Unreachable

ALIVE = ("starting", "running", "stopping")
POLL_S = 0.05
WAIT_S = 60.0

app = App(
    name="down",
    help="Stop the control plane on this machine.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@app.default
def down_command(
    *,
    state_dir: StateDirOption = None,
    timeout: Annotated[
        float,
        Parameter(
            help="Seconds to wait for the control plane to stop (default: 60)",
            validator=NOT_NEGATIVE,
        ),
    ] = WAIT_S,
    name: Annotated[
        str, Parameter(help="Name of the control plane, if it was started with `--name`")
    ] = "",
    as_json: Json = False,
) -> None:
    """Stop the control plane on this machine, as Ctrl-C in `tenfold up` does.

    Running jobs continue, and pending jobs stay in the queue; the next `tenfold up` takes both
    over. To end the jobs too, cancel them first. If only `tenfold up --demo` is running, the demo
    is stopped. If another control plane shares the journal, it takes over at once.
    """
    state_folder = running_state_dir(state_dir).absolute()
    folder = own_folder(state_folder, name)
    pid = lock_holder(folder)
    if pid is None:
        raise Unreachable(
            "no-control-plane",
            f"no control plane is running in `{folder}`",
            "if it was started with `--state-dir`, pass the same directory here",
        )
    if pid == 0:
        raise Refused(
            "other-namespace",
            f"the control plane in `{folder}` runs in another container",
            "stop that container, or run `tenfold down` inside it",
        )
    address = read_address(state_folder)
    jobs_alive = None if address is None else _jobs_alive(address.url, address.token)
    _stop(pid)
    ends_s = monotonic() + timeout
    while lock_holder(folder) == pid:
        if monotonic() >= ends_s:
            raise NoAnswer(
                "not-stopped-yet",
                f"the control plane with PID {pid} has not stopped after {timeout:g} s",
                f"it may still be writing to the journal; wait, or end it with `kill -9 {pid}`",
            )
        sleep(POLL_S)
    if as_json:
        print_json({"state_dir": str(state_folder), "pid": pid, "jobs_running": jobs_alive})
    else:
        show(stopped_text(jobs_alive))


def _jobs_alive(url: str, token: str) -> int | None:
    """Return how many jobs keep running; None if the control plane does not say."""
    with suppress(TenfoldError), Client(url, token, timeout_s=5) as client:
        jobs = client.fleet().jobs
        return sum(jobs.get(state, 0) for state in ALIVE)
    return None


def _stop(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise InputError(
            "not-your-process",
            f"cannot stop the control plane with PID {pid}: it belongs to another user",
            "run `tenfold down` as the user that started it",
        ) from None
