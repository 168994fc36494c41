"""`tenfold estimate`: time, memory and cost of given configurations, as JSON Lines."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from cyclopts import App, Parameter

from tenfold.cli.arguments import Facts
from tenfold.cli.errors import Exit
from tenfold.cli.estimate.cache import cache_command
from tenfold.cli.estimate.federated import federated_command
from tenfold.cli.estimate.money import month_command, own_command
from tenfold.cli.output import print_json_line
from tenfold.compose.fleet import load_facts
from tenfold.files.core.document import decode
from tenfold.files.core.json_lines import parse_json_lines, read_json_lines
from tenfold.model.estimate import NoEstimate, ServeEstimate, ServeRow, TrainEstimate, TrainRow
from tenfold.study.estimate.serve import estimate_serve
from tenfold.study.estimate.train import estimate_train

app = App(
    name="estimate",
    help="Estimate the time, memory and cost of training and serving",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command(cache_command, name="cache")
app.command(federated_command, name="federated")
app.command(month_command, name="month")
app.command(own_command, name="own-or-rent")

Rows = Annotated[
    Path,
    Parameter(
        name="--in",
        allow_leading_hyphen=True,
        help="Configurations as JSON Lines (- for standard input)",
    ),
]
STANDARD_INPUT = Path("-")
R = TypeVar("R", bound=msgspec.Struct)


@app.command
def train(
    *,
    rows: Rows,
    calibrate: Annotated[
        Path | None, Parameter(help="Measured runs to calibrate with, as JSON Lines with `step_s`")
    ] = None,
    facts: Facts = None,
) -> None:
    """Estimate the time and memory of training steps, with a time breakdown.

    Prints one JSON object per row, in order. Exits with status 1 if a configuration cannot run.
    """
    configs = _read(rows, TrainRow)
    observed = [] if calibrate is None else read_json_lines(calibrate, TrainRow)
    _write(estimate_train(configs, load_facts(facts), observed))


@app.command
def serve(
    *,
    rows: Rows,
    calibrate: Annotated[
        Path | None,
        Parameter(
            help="Measured runs to calibrate with, as JSON Lines with "
            "`output_tokens_per_s`, `ttft_s` or `tpot_s`"
        ),
    ] = None,
    facts: Facts = None,
) -> None:
    """Estimate tokens per second, TTFT, TPOT and memory of serving configurations.

    Prints one JSON object per row, in order. Exits with status 1 if a configuration cannot run.
    """
    configs = _read(rows, ServeRow)
    observed = [] if calibrate is None else read_json_lines(calibrate, ServeRow)
    _write(estimate_serve(configs, load_facts(facts), observed))


def _read(path: Path, row_type: type[R]) -> list[R]:
    if path == STANDARD_INPUT:
        text = decode(sys.stdin.buffer.read(), Path("standard input"))
        return parse_json_lines(text, "standard input", row_type)
    return read_json_lines(path, row_type)


def _write(answers: Sequence[TrainEstimate | ServeEstimate | NoEstimate]) -> None:
    encode = msgspec.json.Encoder().encode
    for answer in answers:
        print_json_line(encode(answer))
    raise Exit(1 if any(isinstance(answer, NoEstimate) for answer in answers) else 0)
