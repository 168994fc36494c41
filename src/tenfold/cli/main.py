"""`tenfold`: the command line, from arguments to an exit status.

Command groups are imported on first use to keep `tenfold --help` fast. Standard output is
data only; errors go to standard error, as JSON with `--json`.
"""

import sys
from collections.abc import Sequence
from io import TextIOWrapper
from os import environ

from cyclopts import App, CycloptsError

from tenfold import __version__
from tenfold.cli.errors import Exit, report_bug, report_error, report_usage
from tenfold.cli.help_format import HelpFormat
from tenfold.cli.output import complain
from tenfold.cli.process_exit import exit_process
from tenfold.model.errors import InputError, TenfoldError

EXIT_BUG = 70
EXIT_USAGE = 2

app = App(
    name="tenfold",
    help="Plan, run and grow GPU fleets, from one rack to ten.",
    version=__version__,
    help_format="plaintext",
    help_formatter=HelpFormat(),
)
app.command(
    "tenfold.cli.up.command:app",
    name="up",
    help="""Start a control plane on this machine.

    The control plane runs until Ctrl-C; jobs keep running after it stops. Without --fleet or
    --virtual-nodes, this machine is the only node.
    """,
)
app.command(
    "tenfold.cli.up.down:app",
    name="down",
    help="""Stop the control plane on this machine.

    Running jobs continue, and the next `tenfold up` reattaches to them.
    """,
)
app.command(
    "tenfold.cli.status:status_app",
    name="status",
    help="Show the control plane, the fleet, the queue and your jobs.",
)
app.command(
    "tenfold.cli.top.command:app",
    name="top",
    help="Watch the fleet, the queue, jobs and alarms in the terminal.",
)
app.command(
    "tenfold.cli.status:whoami_app",
    name="whoami",
    help="Show the user, team and role of your token.",
)
app.command(
    "tenfold.cli.grow.command:app",
    name="grow",
    help="""Find out what breaks first at 2x, 5x and 10x.

    The output also shows how to raise each limit, and what breaks next. Values of --axis: jobs
    (arrival rate), job-size (GPUs per job), data (bytes stored, read and written), traffic
    (requests), teams (more teams like today's, with their jobs), nodes (more nodes and jobs on
    today's sites, switches and storage), all (nodes, data, traffic and teams).
    """,
)
app.command(
    "tenfold.cli.assess.command:app",
    name="assess",
    help="""Assess a cluster from its job history: utilisation, queue waits and what breaks first.

    On a login node, `tenfold assess slurm` needs no configuration and changes nothing. It prints
    one screen and writes one HTML page.
    """,
)
app.command(
    "tenfold.cli.attach.command:app",
    name="attach",
    help="""Record the state of a Slurm cluster so that other commands can analyse it.

    `job why`, `job list`, `replay`, `grow` and `fleet idle` then work with --bundle and the state
    directory, even though Tenfold does not schedule the cluster.
    """,
)
app.command(
    "tenfold.cli.facts.command:app",
    name="facts",
    help="List and check built-in data about hardware, prices and models.",
)
app.command(
    "tenfold.cli.estimate.command:app",
    name="estimate",
    help="Estimate time, memory and cost of training and serving.",
)
app.command(
    "tenfold.cli.plan.command:app", name="plan", help="Plan training runs and size services."
)
app.command(
    "tenfold.cli.advise:app",
    name="advise",
    help="""Recommend vertical, horizontal, elastic or distributed scaling.

    The advice depends on the bottleneck, whether users wait for responses, the size of the model
    and the speed of the network. These come from the fleet file and the model where possible; the
    command prompts for the rest.
    """,
)
app.command(
    "tenfold.cli.capacity.command:app",
    name="capacity",
    help="Forecast demand, and plan what to order, reserve and rent.",
)
app.command(
    "tenfold.cli.offers.command:app",
    name="offers",
    help="List and rank accelerator offers, and estimate the cost of leaving a provider.",
)
app.command(
    "tenfold.cli.cost.command:app",
    name="cost",
    help="Report what a fleet cost, and what would cost less.",
)
app.command(
    "tenfold.cli.baseline.command:app",
    name="baseline",
    help="Record workload baselines and detect slowdowns.",
)
app.command(
    "tenfold.cli.sim.command:app", name="sim", help="Simulate jobs on a fleet and compare policies."
)
app.command(
    "tenfold.cli.replay.command:app",
    name="replay",
    help="""Replay a recorded run and explain its decisions.

    Without further options, checks that every decision is the same as in the recording; stops at
    the first difference and exits with status 1. The recording is a bundle from `sim run --bundle`
    or --export, or the journal of a control plane, which may be running. --policy runs the same
    submissions, jobs and faults under another policy and lists the differences.
    """,
)
app.command(
    "tenfold.cli.job.command:app",
    name="job",
    help="Submit, list and cancel jobs, and see why one is waiting.",
)
app.command(
    "tenfold.cli.service.command:app",
    name="service",
    help="Deploy, show, scale and roll out services.",
)
app.command(
    "tenfold.cli.slurm.sbatch:app",
    name="sbatch",
    help="""Submit a batch script with #SBATCH lines.

    Takes the options of Slurm's sbatch, such as -J, -N, -n, -c, -G, --gres, --mem, -t, -a, -d, -o,
    -A and --wrap; docs/how-to/slurm-users.md lists them. Without a script, it is read from standard
    input. --partition takes pools and tags of nodes, as `tenfold sinfo` lists them.

    Options and #SBATCH lines that have no effect are listed in a note. A job is rejected if an
    option that affects resources, scheduling order or placement is not supported;
    --ignore-directives submits it anyway. --parsable prints only the job id, --wait waits for the
    job to end, --test-only submits nothing. --allow-pending queues a job even if no node can fit
    it; --json prints the job as JSON.

    The script that is submitted is the one that runs, as in Slurm. The job has the variables that
    Slurm sets, such as SLURM_JOB_ID and SLURM_ARRAY_TASK_ID.
    """,
)
app.command(
    "tenfold.cli.slurm.views:squeue_app",
    name="squeue",
    help="List pending and running jobs as Slurm does.",
)
app.command(
    "tenfold.cli.slurm.views:scancel_app", name="scancel", help="Cancel jobs as Slurm does."
)
app.command(
    "tenfold.cli.slurm.sinfo:app",
    name="sinfo",
    help="List nodes by pool and state as Slurm does.",
)
app.command(
    "tenfold.cli.model.command:app",
    name="model",
    help="Register models, and move their aliases and stages.",
)
app.command(
    "tenfold.cli.node.command:app", name="node", help="List, cordon, uncordon and test nodes."
)
app.command(
    "tenfold.cli.gateway.command:app",
    name="gateway",
    help="Route requests to service replicas: OpenAI-compatible API, fair sharing, rate limits.",
)
app.command(
    "tenfold.cli.objects.command:app",
    name="objects",
    help="Run an S3 server on directories and object stores, and maintain its storage tiers.",
)
app.command("tenfold.cli.token:app", name="token", help="Create, list and revoke API tokens.")
app.command(
    "tenfold.cli.alarms:app",
    name="alarms",
    help="Write Prometheus alerting rules and Grafana dashboards.",
)
app.command(
    "tenfold.cli.journal.command:app",
    name="journal",
    help="Inspect, back up, verify and compact the journal.",
)
app.command(
    "tenfold.cli.policy.command:app", name="policy", help="Check, show and preview policies."
)
app.command(
    "tenfold.cli.bench:app", name="bench", help="Run public scheduler benchmarks (Kueue, KAI)."
)
app.command(
    "tenfold.cli.completion:app",
    name="completion",
    help="Print or install a completion script for bash, zsh or fish.",
)
app.command(
    "tenfold.cli.fleet.command:app", name="fleet", help="Check, show, import and merge fleet files."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = _with_stdin(list(sys.argv[1:] if arguments is None else arguments))
    as_json = "--json" in words[: words.index("--") if "--" in words else None]
    _replace_unencodable()
    if not __debug__:
        complain("error: tenfold needs assertions; run Python without -O")
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
        # The reader closed the pipe (`| head`), which is not an error.
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


def _with_stdin(words: list[str]) -> list[str]:
    """Return the words of a command with `-` as the name of standard input.

    The parser of options refuses a lone `-`.
    """
    if words[:2] != ["job", "submit"]:
        return words
    end = words.index("--") if "--" in words else len(words)
    # Which words came after `--` is not passed on by the parser either.
    words[end:end] = ["--words-are-command"] if end == len(words) - 2 else []
    return ["/dev/stdin" if word == "-" else word for word in words[:end]] + words[end:]


def _replace_unencodable() -> None:
    """Replace characters that the terminal cannot show instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _cannot_write(error: OSError) -> TenfoldError:
    return InputError(
        "cannot-write",
        f"cannot write output: {error.strerror or error}",
        "check the disk and where the output is redirected",
    )


def run() -> None:
    """Entry point of the console script."""
    # No command multiplies large matrices; starting BLAS threads costs more than it saves.
    environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    exit_process(main())
