"""`tenfold`: the command line, from arguments to an exit status.

Groups are imported when they are used, so that `tenfold --help` stays quick. Standard
output is data only; errors go to standard error, as JSON when `--json` is asked for.
"""

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from os import environ

from cyclopts import App, CycloptsError

from tenfold import __version__
from tenfold.cli.errors import Exit, report_bug, report_error, report_usage
from tenfold.cli.process_exit import exit_process
from tenfold.model.errors import InputError, TenfoldError

EXIT_BUG = 70
EXIT_USAGE = 2

app = App(
    name="tenfold",
    help="Plan, run, grow and see an AI fleet: from one rack of GPUs to ten.",
    version=__version__,
    help_format="plaintext",
)
app.command(
    "tenfold.cli.up.command:app", name="up", help="Start the control plane of this machine."
)
app.command(
    "tenfold.cli.grow.command:app", name="grow", help="Name what breaks first at 2x, 5x, 10x."
)
app.command(
    "tenfold.cli.facts.command:app", name="facts", help="Figures about hardware, prices, models."
)
app.command(
    "tenfold.cli.estimate.command:app",
    name="estimate",
    help="Estimate what training and serving take.",
)
app.command("tenfold.cli.plan.command:app", name="plan", help="Lay out training, size services.")
app.command("tenfold.cli.advise:app", name="advise", help="Advise how to scale, and why.")
app.command(
    "tenfold.cli.baseline.command:app",
    name="baseline",
    help="Record how a workload runs, notice slowing.",
)
app.command(
    "tenfold.cli.sim.command:app", name="sim", help="Run jobs through the deciders, simulated."
)
app.command(
    "tenfold.cli.replay.command:app", name="replay", help="Replay a recorded run, and explain it."
)
app.command(
    "tenfold.cli.job.command:app", name="job", help="Hand in jobs, follow them, ask why one waits."
)
app.command(
    "tenfold.cli.node.command:app", name="node", help="List nodes, take them out of use and back."
)
app.command("tenfold.cli.token:app", name="token", help="Make, list and revoke tokens.")
app.command("tenfold.cli.alarms:app", name="alarms", help="Write alarms for Prometheus.")
app.command("tenfold.cli.journal.command:app", name="journal", help="Look after the journal.")
app.command(
    "tenfold.cli.policy.command:app", name="policy", help="Check, show and preview policies."
)
app.command("tenfold.cli.bench:app", name="bench", help="Run public scale scenarios, side by side.")
app.command("tenfold.cli.fleet.command:app", name="fleet", help="Describe, check and sum a fleet.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    _spare_odd_terminals()
    if not __debug__:
        sys.stderr.write("error: tenfold keeps its assertions on; run python without -O\n")
        return EXIT_USAGE
    try:
        status = app(words, exit_on_error=False, print_error=False, result_action="return_value")
    except Exit as done:
        return done.status
    except CycloptsError as error:
        report_usage(error, as_json)
        return EXIT_USAGE
    except TenfoldError as error:
        report_error(error, as_json)
        return error.exit_status
    except BrokenPipeError:
        # The reader went away (`| head`): nothing is wrong, and nothing more can be said.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        report_error(_cannot_write(error), as_json)
        return EXIT_USAGE
    except Exception as error:
        report_bug(error, as_json)
        return EXIT_BUG
    return status if isinstance(status, int) else 0


def _spare_odd_terminals() -> None:
    """Let a terminal that lacks a character show a mark instead of ending in an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _cannot_write(error: OSError) -> TenfoldError:
    return InputError(
        "cannot-write",
        f"the output cannot be written: {error.strerror or error}",
        "check the disk and where the output goes",
    )


def run() -> None:
    """Be the console script."""
    # No command multiplies large matrices; starting threads for it takes longer than it saves.
    environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    exit_process(main())
