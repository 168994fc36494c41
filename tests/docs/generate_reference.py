"""Generate the reference pages from the code.

Run it after a change of rows, facts or commands:

    .venv/bin/python tests/docs/generate_reference.py
"""

import ast
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
from cyclopts import App
from msgspec import Struct, inspect
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.meanings import (
    ANSWER_KEYS,
    ESTIMATE_KEYS,
    FACT_KEYS,
    FLEET_KEYS,
    FLEET_TABLES,
    GROW_KEYS,
    GROW_TABLES,
    GROW_TAKES,
    MEASURED,
)
from tenfold.cli.main import app
from tenfold.facts.kinds import KINDS
from tenfold.files.core.expectations import expectation, unit_of
from tenfold.files.fleet.rows import SINGLE_TABLES, TABLES, PriceRow
from tenfold.files.growth import MANY, SINGLE
from tenfold.gateway.admit.refusals import REFUSALS
from tenfold.gateway.serve.metrics import GAUGES, metrics_text
from tenfold.model.estimate import ServeRow, ShapeRow, TrainRow
from tenfold.model.facts.fact import Fact
from tenfold.model.facts.shape import Mla, ModelShape
from tenfold.model.growth.growth import AXES
from tenfold.model.service.routing import (
    Hold,
    Overflow,
    Replica,
    Revision,
    Rollback,
    RoutingState,
    Service,
    TeamLimits,
    TokenDigest,
)
from tenfold.model.service.traffic import GatewayTraffic
from tenfold.study.grow.layer import AxisGrowth, DerivedLayer, Layer
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.runs.layer import SimulatedLayer

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
MADE = "<!-- Written by tests/docs/generate_reference.py; do not edit by hand. -->"


@cache
def pages() -> dict[str, str]:
    """Return the text of every generated page by its file name."""
    return {file: write() for file, write in WRITERS.items()}


ESTIMATE_ROWS: dict[str, type[Struct]] = {
    "train": TrainRow,
    "serve": ServeRow,
    "shape": ShapeRow,
}


def fleet_tables() -> dict[str, type[Struct]]:
    """Return the row structs of a fleet file by table, prices among them."""
    tables: dict[str, type[Struct]] = {}
    for name, row in {**TABLES, **SINGLE_TABLES}.items():
        tables[name] = row
        if name == "pool":
            tables["price"] = PriceRow
    return tables


def fleet_file() -> str:
    parts = [
        "# The fleet file",
        MADE,
        "This page lists every table and key of a fleet file, with its unit, range and default.",
        "A fleet file is TOML (`.toml`) or YAML (`.yaml`, `.yml`). Table names are singular. Keys "
        "include the unit, and values are plain numbers. Unknown keys are errors. The optional "
        "top-level key `name` names the fleet; the default is the name of the file.",
        "A minimal fleet file:",
        "<!-- check: fleet -->\n```toml\n"
        + (ROOT / "examples/one-rack/fleet.toml").read_text().strip()
        + "\n```",
        "A host list names many nodes in one string, as in Slurm: `n[1-4]` is four nodes, "
        "`gpu[001-128],login1` is 129. The last column is the default; "
        "[Defaults](../explanation/defaults.md) explains where defaults come from.",
    ]
    for name, row in fleet_tables().items():
        head = "price" if name == "price" else f"[{name}]" if name in SINGLE_TABLES else ""
        parts.append(f"## `{head or f'[[{name}]]'}`")
        parts.append(FLEET_TABLES[name])
        lines = ["| key | meaning | type | default |", "|---|---|---|---|"]
        for field in _fields(row):
            meaning, otherwise = FLEET_KEYS[name][field.encode_name]
            default = _default(field, otherwise)
            takes = _takes(field)
            lines.append(f"| `{field.encode_name}` | {meaning} | {takes} | {default} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def facts() -> str:
    parts = [
        "# Facts",
        MADE,
        "This page lists the fields of every kind of fact.",
        "Fact files are TOML or YAML with a list of tables for each kind. `tenfold facts list` "
        "counts the facts of each kind, and `tenfold facts check` checks your own. "
        "[Add an accelerator](../how-to/add-an-accelerator.md) shows how to write a fact.",
        "## Every fact",
        "Every row has these fields. A row with the name of an existing fact overrides only the "
        "fields it sets, but must have its own `source`, `date` and `evidence`.",
        _fact_table("fact", Fact, ()),
    ]
    common = Fact.__struct_fields__
    for kind in KINDS.values():
        parts.append(f"## `[[{kind.name}]]`")
        parts.append(f"Content: {kind.says.replace(': ', ' with ')}.")
        parts.append(_fact_table(kind.name, kind.struct, common))
    for name, struct in (("shape", ModelShape), ("mla", Mla)):
        parts.append(f"### `{name}`")
        parts.append(_fact_table(name, struct, ()))
    return "\n\n".join(parts) + "\n"


def estimate_rows() -> str:
    examples = ROOT / "examples" / "estimates"
    parts = [
        "# Estimate rows",
        MADE,
        "This page lists the input and output keys of `tenfold estimate`.",
        "The input is JSON Lines: one JSON object (a row) per line, in UTF-8; empty lines are "
        "skipped. The output is JSON Lines in the same order. A key that is null or missing gets "
        "its default. If a line has an unknown key or a wrong value, or is not JSON, the command "
        "prints the line number and exits with status 2. The result of an impossible row is "
        '`{"id", "error"}`, and the command exits with status 1.',
        "Key names include the unit. Batch sizes are in sequences. Intervals cover 80% of cases.",
        "## Training rows",
        _row_example(examples / "train.jsonl"),
        _row_table("train"),
        "`--calibrate` reads observed runs: the same rows, each with its measured `step_s`.",
        "## Training estimates",
        _answer_table("train"),
        "### `breakdown_s`",
        "Only exposed time counts: communication that overlaps with compute is not included.",
        _answer_table("breakdown"),
        "## Serving rows",
        "A row describes one replica.",
        _row_example(examples / "serve.jsonl"),
        _row_table("serve"),
        "`--calibrate` reads observed runs: the same rows, each with its measured "
        "`output_tokens_per_s`, or `ttft_s` and `tpot_s`.",
        "## Serving estimates",
        _answer_table("serve"),
        "### `under_load`",
        "[Latency under load](../explanation/latency-under-load.md) explains these. A quantity "
        "that grows without bound is null.",
        _answer_table("under_load"),
        "## Output of `estimate cache`",
        "With `--json`, the output is one object.",
        _answer_table("cache"),
        "Each entry of `sizes` has:",
        _answer_table("size"),
        "## Output of `estimate month`",
        "With `--json`, the output is one object. Each entry of `lines` has `name` and `usd`.",
        _answer_table("month"),
        "## Output of `estimate own-or-rent`",
        "With `--json`, the output is one object; dollars are per GPU.",
        _answer_table("own"),
        "Each entry of `by_busy` has:",
        _answer_table("busy"),
        "## Model shapes",
        "In both kinds of rows, `model` may be a table of dimensions instead of a name.",
        _row_table("shape"),
    ]
    return "\n\n".join(parts) + "\n"


GROW_EXAMPLE = """\
[limits]
usd_per_month_most = 500_000

[[controller]]
kind = "kueue"
cycles_per_min = 25
admitted_share = 0.38

[operations]
crew = 2
repairs_per_person_day = 3
spares = 4

[pace]
today = 2026-11-15
doubles_in_months = 9
"""


def grow_file() -> str:
    parts = [
        "# The grow file",
        MADE,
        "This page lists every table and key of the file that `tenfold grow --grow` reads.",
        "The fleet file describes what you have; the grow file describes the demand on it and its "
        "limits. It is TOML (`.toml`) or YAML (`.yaml`, `.yml`). Keys include the unit, and values "
        "are plain numbers. All tables are optional, and unknown keys are errors. A "
        "[layer](growth-layers.md) with missing inputs is shown as `unknown`, with the key that "
        "it needs, and is not ranked.",
        f"<!-- check: grow -->\n```toml\n{GROW_EXAMPLE}```",
    ]
    for name, says in GROW_TABLES.items():
        parts.append(f"## `[{name}]`" if name in SINGLE else f"## `[[{name}]]`")
        parts.append(says)
        lines = ["| key | meaning | type | default |", "|---|---|---|---|"]
        for field in _fields({**SINGLE, **MANY}[name]):
            key = field.encode_name
            meaning, otherwise = GROW_KEYS[name][key]
            takes = GROW_TAKES.get(f"{name}.{key}") or _takes(field)
            default = _default(field, otherwise).replace(".0`", "`")
            lines.append(f"| `{key}` | {meaning} | {takes} | {default} |")
        parts.append("\n".join(lines))
    return "\n\n".join([*parts, MEASURED])


ROUTING = ROOT / "src/tenfold/model/service/routing.py"
ROUTING_TABLES: dict[str, tuple[type[Struct], str]] = {
    "": (RoutingState, "At the top of the file:"),
    "[[services]]": (Service, "A service: which requests it gets, and where they are routed."),
    "[[services.revisions]]": (Revision, "One version of a service."),
    "[[services.revisions.replicas]]": (Replica, "One process that serves requests."),
    "[services.hold]": (Hold, "The queue for requests while no replica is ready, or all are busy."),
    "[services.rollback]": (
        Rollback,
        "When a canary is rolled back, compared with the other revisions in the same window.",
    ),
    "[[services.overflow]]": (
        Overflow,
        "A fallback for requests that would wait too long: another site, or an external endpoint.",
    ),
    "[[teams]]": (TeamLimits, "Limits of a team, across all services; 0 means no limit."),
    "[[tokens]]": (TokenDigest, "A token that clients may use, stored as a digest."),
}


def gateway() -> str:
    parts = [
        "# The gateway",
        MADE,
        "This page lists the keys of a routing file, and the paths, error codes and metrics of "
        "`tenfold gateway run`.",
        "[Serve models through the gateway](../how-to/serve-through-the-gateway.md) shows how to "
        "use it, and [How requests are routed](../explanation/how-requests-are-routed.md) explains "
        "how it chooses a replica.",
        "## The routing file",
        "A routing file is TOML (`.toml`) or YAML (`.yaml`, `.yml`), which includes JSON: the "
        "response to `GET /api/v1/routing` is also a valid routing file. Unknown keys are errors. "
        "`tenfold gateway check` lists all errors with their lines. A running gateway checks the "
        "file for changes every second, and ignores a file with errors.",
    ]
    for head, (struct, text) in ROUTING_TABLES.items():
        parts += [f"### `{head}`", text] if head else [text]
        parts.append(_routing_table(struct))
    parts += [
        "## Paths",
        "\n".join(
            [
                "| path | response |",
                "|---|---|",
                "| `/v1/models` | the models that the token may use |",
                "| other `/v1/` paths | the service that lists the `model` in the body |",
                "| `/services/NAME/...` | the service of that name, with the rest of the path |",
                "| any, with `X-Tenfold-Service: NAME` | that service, with the same path |",
                "| `/healthz` | 200 while the process runs |",
            ]
        ),
        "On the admin address:",
        "\n".join(
            [
                "| path | response |",
                "|---|---|",
                "| `/gateway/load` | counters and current load of every service, as JSON |",
                "| `/metrics` | the metrics below |",
                "| `/healthz` | 200 while the process runs |",
                "| `/readyz` | 200 once there is a routing state, 503 before and while draining |",
            ]
        ),
        "## Error codes",
        "Errors have the format of the OpenAI API, with one of these values under `code`. "
        "Responses from replicas, including errors, are passed through unchanged.",
        "\n".join(
            ["| code | status | meaning |", "|---|---|---|"]
            + [f"| `{code}` | {one.status} | {one.meaning} |" for code, one in REFUSALS.items()]
        ),
        "## Metrics",
        "\n".join(["| metric | meaning |", "|---|---|", *_metric_rows()]),
    ]
    return "\n\n".join(parts) + "\n"


def _routing_table(struct: type[Struct]) -> str:
    says = _docstrings(struct.__name__)
    lines = ["| key | meaning | type | default |", "|---|---|---|---|"]
    for field in _fields(struct):
        key = field.encode_name
        lines.append(f"| `{key}` | {says[key]} | {_routing_takes(field)} | {_default(field, '')} |")
    return "\n".join(lines)


def _routing_takes(field: inspect.Field) -> str:
    kind = field.type
    if isinstance(kind, inspect.VarTupleType) and isinstance(kind.item_type, inspect.StructType):
        return "a list of tables"
    return _takes(field)


def _docstrings(name: str) -> dict[str, str]:
    """Return what the source says of each field of a struct."""
    tree = ast.parse(ROUTING.read_text())
    body = next(one.body for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def _metric_rows() -> list[str]:
    """Return a row for each metric of a gateway that has counted nothing."""
    traffic = GatewayTraffic(
        gateway_id="", started_ms=0, at_ms=0, routing_version=0, services=(), rolled_back=()
    )
    text = metrics_text(traffic, dict.fromkeys(GAUGES, 0.0)).decode()
    helps = [line.split(" ", 3)[2:] for line in text.splitlines() if line.startswith("# HELP ")]
    return [f"| `{name}` | {meaning} |" for name, meaning in helps]


def growth_layers(layers: Sequence[Layer]) -> str:
    """Return the page of layers, in the order in which they are shown."""
    head = ["layer", "id", "condition", "method", "required input", "fix", "lead time"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for layer in layers:
        cells = [
            layer.label(""),
            f"`{layer.name}`",
            layer.breaks,
            _judged_by(layer),
            layer.needs,
            layer.fixed_by,
            ", ".join(f"`{one}`" for one in layer.lead_times) or "-",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    assumed: dict[str, list[str]] = {}
    for layer in layers:
        if layer.assumes:
            assumed.setdefault(layer.assumes, []).append(layer.label(""))
    parts = [
        "# Growth layers",
        MADE,
        "This page lists the layers that `tenfold grow` evaluates: the condition under which each "
        "one breaks, its required input and its fix.",
        "Computed layers use a formula. Simulated layers use simulations of the job history at "
        "several factors. [How to read growth results]"
        "(../explanation/how-to-read-growth-results.md) explains the result, and "
        "[Add a growth layer](../how-to/add-a-growth-layer.md) shows how to add one. The id is "
        "used in JSON and in measurements files.",
        "\n".join(lines),
        "## What grows along each axis",
        "`yes`: the demand on the layer grows by the factor of the axis, with the limits given in "
        "the second column. `both`: demand and capacity grow by the same factor, so utilisation "
        "does not change. `-`: the axis does not change the layer. Along `all`, more jobs read, "
        "but each reads as much as before, so no demand is multiplied twice.",
        _axis_table(layers),
        "## Assumptions",
        "A layer that is based on an assumption is graded `assumed` and not ranked, unless "
        "`--count-assumed` is given.",
        "\n".join(
            ["| layers | assumption |", "|---|---|"]
            + [f"| {', '.join(names)} | {said} |" for said, names in assumed.items()]
        ),
    ]
    return "\n\n".join(parts) + "\n"


GROWTH_WORDS: dict[AxisGrowth, str] = {"demand": "yes", "both": "both", "none": "-"}


def _axis_table(layers: Sequence[Layer]) -> str:
    """Return what grows of each layer, and along which axes."""
    head = ["layer", "what grows", *(f"`{axis}`" for axis in AXES)]
    rows = [
        [layer.label(""), layer.grows_by, *(GROWTH_WORDS[layer.growth(axis)] for axis in AXES)]
        for layer in layers
        if layer.grows_with
    ]
    table = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in table)


def _judged_by(layer: Layer) -> str:
    if isinstance(layer, SimulatedLayer):
        return "simulated"
    return "other layers" if isinstance(layer, DerivedLayer) else "computed"


def _row_example(file: Path) -> str:
    return f"<!-- check: {file.stem}-rows -->\n```json\n{file.read_text().splitlines()[0]}\n```"


def _row_table(name: str) -> str:
    lines = ["| key | meaning | type | default |", "|---|---|---|---|"]
    for field in _fields(ESTIMATE_ROWS[name]):
        meaning, otherwise = ESTIMATE_KEYS[name][field.encode_name]
        default = "**required**" if field.required else otherwise
        lines.append(f"| `{field.encode_name}` | {meaning} | {_row_takes(field)} | {default} |")
    return "\n".join(lines)


def _row_takes(field: inspect.Field) -> str:
    if field.encode_name == "model":
        return "a string, or a shape"
    if field.encode_name == "id":
        return "a string or a number"
    # The upper bound only keeps arithmetic whole; nobody comes near it.
    text = _takes(field)
    for least in (0, 1):
        text = text.replace(f" from {least} to 1,000,000,000,000", f" of at least {least}")
    unit = {"gbps": " of Gbit/s", "s": " of seconds"}
    # The unit of a rate per GPU is not at the end of its name.
    before, *words = field.encode_name.split("_")
    for word in words:
        is_rate, before = before == "per", word
        if word in unit and " of " not in text and not is_rate:
            text = text.replace("a number", f"a number{unit[word]}")
    return text


def _answer_table(name: str) -> str:
    lines = ["| key | type | meaning |", "|---|---|---|"]
    lines += [f"| `{key}` | {gives} | {says} |" for key, (gives, says) in ANSWER_KEYS[name].items()]
    return "\n".join(lines)


def cli() -> str:
    parts = [
        "# Commands",
        MADE,
        "This page lists every command and option.",
        "Commands that print lists accept `--json`. Standard output is data only; errors go to "
        "standard error, as JSON with `--json`. `NO_COLOR=1` turns colour off, `TENFOLD_FACTS` "
        "sets the facts folder for all commands, and `TENFOLD_DEBUG=1` prints tracebacks.",
        "| exit status | meaning |\n|---|---|\n| 0 | success |\n"
        "| 1 | negative result: a check failed, or nothing fits |\n"
        "| 2 | bad input or usage |\n| 3 | not allowed |\n| 4 | a program or server is down |\n"
        "| 70 | a bug in Tenfold |\n| 130 | interrupted with Ctrl-C; submitted jobs keep running |",
    ]
    # A lazily loaded command has no help until it is imported, so load all of them first.
    for words in list(commands()):
        parts.append(f"## `{' '.join(('tenfold', *words))}`")
        parts.append(f"```text\n{help_text(words)}\n```")
    return "\n\n".join(parts) + "\n"


def commands(group: App = app, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of every command that help lists, groups before what is in them."""
    yield words
    for name in group:
        if not name.startswith("-") and group[name].show:
            yield from commands(group[name], (*words, name))


def help_text(words: tuple[str, ...]) -> str:
    """Return what `--help` prints for a command, without trailing spaces."""
    stream = io.StringIO()
    console = Console(file=stream, width=100, no_color=True, force_terminal=False)
    app.help_print(list(words), console=console)
    return "\n".join(line.rstrip() for line in stream.getvalue().strip().splitlines())


def _fields(row: type[Struct]) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(row)
    assert isinstance(info, inspect.StructType), "a row is a struct"
    return info.fields


def _fact_table(kind: str, struct: type[Struct], leave_out: tuple[str, ...]) -> str:
    meanings: Mapping[str, str] = FACT_KEYS[kind]
    lines = ["| field | meaning | type | default |", "|---|---|---|---|"]
    for field in _fields(struct):
        if field.name not in leave_out:
            takes, default = _takes(field), _default(field, "" if kind == "fact" else "unknown")
            lines.append(f"| `{field.name}` | {meanings[field.name]} | {takes} | {default} |")
    return "\n".join(lines)


def _takes(field: inspect.Field) -> str:
    kinds = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    if any(isinstance(kind, inspect.StructType) for kind in kinds):
        return "a table"
    text = expectation(field.type, field.encode_name)
    unit = unit_of(field.encode_name)
    is_float = any(isinstance(kind, inspect.FloatType) for kind in kinds)
    if unit and not is_float and any(isinstance(kind, inspect.IntType) for kind in kinds):
        text = f"{text}, in {unit}"
    return text


def _default(field: inspect.Field, otherwise: str) -> str:
    if field.required:
        return "**required**"
    value = field.default
    if field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    if value is None:
        return otherwise or "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Struct):
        return "its defaults"
    if isinstance(value, tuple) and value:
        return f"`{msgspec.json.encode(value).decode()}`"
    if value in ((), [], {}, ""):
        return otherwise or "empty"
    return f"`{value:,}`" if isinstance(value, int) else f"`{value}`"


WRITERS: dict[str, Callable[[], str]] = {
    "fleet-file.md": fleet_file,
    "facts.md": facts,
    "cli.md": cli,
    "estimate-rows.md": estimate_rows,
    "grow-file.md": grow_file,
    "growth-layers.md": lambda: growth_layers(LAYERS),
    "gateway.md": gateway,
}


if __name__ == "__main__":
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for file, text in pages().items():
        (REFERENCE / file).write_text(text)
