"""`tenfold facts`: figures about hardware, prices and models, with their sources."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.errors import Exit
from tenfold.cli.facts.prices import prices_command
from tenfold.cli.facts.render import (
    SortKey,
    listing,
    ranked_accelerators,
    ranking,
    show_fact,
    show_shape,
)
from tenfold.cli.fleet.check import as_rows, show_findings
from tenfold.cli.output import print_json, show, table
from tenfold.compose.fleet import load_facts
from tenfold.compose.settings import facts_folder
from tenfold.facts.kinds import KINDS
from tenfold.facts.loader import read_catalogue
from tenfold.files.models.hf_config import read_hf_config
from tenfold.model.errors import InputError
from tenfold.model.facts.fact import Fact
from tenfold.model.fleet.hardware import Accelerator
from tenfold.report.figures import count

app = App(
    name="facts",
    help="Figures on hardware, prices and models, with sources",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command(prices_command, name="prices")

KindName = Annotated[str | None, Parameter(help=f"Kind of fact: {', '.join(KINDS)}")]


@app.command(name="list")
def list_command(
    *,
    kind: KindName = None,
    sort: Annotated[
        SortKey | None,
        Parameter(
            help="Rank accelerators by this figure, highest first; entries without the figure come "
            "last"
        ),
    ] = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """List the kinds of data, or all entries of one kind."""
    catalogue = load_facts(facts)
    if sort is not None:
        _ranked(list(catalogue.accelerators), kind, sort, as_json)
        return
    if kind is None:
        rows = [(one, getattr(catalogue, one.table)) for one in KINDS.values()]
        if as_json:
            print_json({one.name: len(fact_table) for one, fact_table in rows})
            return
        lines = [[one.name, f"{len(fact_table):,}", one.says] for one, fact_table in rows]
        show(table("", ["kind", ">facts", "contents"], lines))
        return
    facts_of_kind = list(getattr(catalogue, _kind(kind)))
    if as_json:
        print_json(facts_of_kind)
    else:
        show(listing(facts_of_kind))


def _ranked(parts: list[Accelerator], kind: str | None, sort: SortKey, as_json: bool) -> None:
    if kind is None or KINDS.get(kind.rstrip("s")) is not KINDS["accelerator"]:
        raise InputError(
            "cannot-sort",
            "`--sort` ranks accelerators only",
            "add `--kind accelerator`",
            field="--sort",
        )
    ranked = ranked_accelerators(parts, sort)
    if as_json:
        print_json(ranked)
    else:
        show(ranking(ranked))


def _kind(name: str) -> str:
    kind = KINDS.get(name.rstrip("s"))
    if kind is None:
        raise InputError(
            "unknown-kind", f"unknown kind of fact `{name}`", f"valid kinds: {', '.join(KINDS)}"
        )
    return kind.table


@app.command(name="show")
def show_command(
    name: Annotated[
        str, Parameter(help="Name or alias of a fact, or path to a model's config.json")
    ],
    *,
    kind: KindName = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Show a fact with the evidence for each figure, or the dimensions in a model's config.json."""
    if kind is None and (name.endswith(".json") or Path(name).is_file()):
        shape = read_hf_config(Path(name))
        if as_json:
            print_json(
                {"shape": shape, "params": shape.params, "params_active": shape.params_active}
            )
        else:
            show(show_shape(shape))
        return
    fact = _find(name, kind, facts)
    if as_json:
        print_json(fact)
    else:
        show(show_fact(fact))


def _find(name: str, kind: str | None, facts: Path | None) -> Fact:
    catalogue = load_facts(facts)
    if kind is not None:
        return getattr(catalogue, _kind(kind)).get(name)
    for fact_table in catalogue.tables:
        fact = fact_table.find(name)
        if fact is not None:
            return fact
    near = [
        fact_table.hint(name)
        for fact_table in catalogue.tables
        if "did you mean" in fact_table.hint(name)
    ]
    raise InputError(
        "unknown-fact",
        f"no entry named `{name}`",
        near[0] if near else "`tenfold facts list` lists the kinds",
    )


@app.command
def check(
    folder: Annotated[Path | None, Parameter(help="Directory or file with your own data")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Check the built-in data and your own, and report all errors."""
    catalogue, findings = read_catalogue(facts_folder(folder))
    if as_json:
        print_json({"faults": as_rows(findings), "warnings": []})
    else:
        show_findings(findings)
        total = sum(len(fact_table) for fact_table in catalogue.tables)
        show(f"{total:,} facts of {len(catalogue.tables)} kinds: {count(len(findings), 'error')}")
    raise Exit(2 if findings else 0)
