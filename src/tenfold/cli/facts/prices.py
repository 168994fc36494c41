"""`tenfold facts prices`: median prices from a catalogue of cloud offers."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Force, Json
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.compose.fleet import load_facts
from tenfold.files.core.write import write_new_file
from tenfold.files.prices.skypilot import read_price_catalogue
from tenfold.files.prices.write import render_price_facts
from tenfold.report.figures import count


def prices_command(
    catalogue: Annotated[Path, Parameter(help="Catalogue of offers as CSV, CSV.gz or Parquet")],
    *,
    source: Annotated[str, Parameter(help="Source of the catalogue, recorded with the prices")],
    date: Annotated[str, Parameter(help="Date of the prices, such as 2026-08-22")],
    hosts: Annotated[
        Path | None,
        Parameter(help="Prices of GCP machine types; the catalogue's GCP offers exclude the host"),
    ] = None,
    out: Annotated[Path | None, Parameter(help="Write the prices to this TOML file")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Compute the median price of a GPU-hour by provider and accelerator.

    Placeholder prices are dropped; the number dropped by each filter is printed to standard
    error.
    """
    fact_table = load_facts().accelerators
    facts, notes = read_price_catalogue(
        catalogue, fact_table, source=source, date=date, hosts=hosts
    )
    if out is not None:
        write_new_file(out, render_price_facts(facts), force=force)
    if as_json:
        print_json({"prices": facts, "notes": notes})
        return
    print_note(f"{notes.offers_used:,} of {notes.offers_read:,} offers used")
    for rule, dropped in notes.dropped.items():
        if dropped:
            print_note(f"{count(dropped, 'offer')} dropped by rule `{rule}`")
    if notes.unresolved:
        names = ", ".join(notes.unresolved)
        print_note(f"no accelerator fact for {names}")
    rows = [
        [
            fact.accelerator,
            fact.provider,
            fact.kind,
            f"{fact.usd_per_gpu_hour:,.2f}",
            str(fact.offers),
        ]
        for fact in sorted(facts, key=lambda one: (one.accelerator, one.kind, one.usd_per_gpu_hour))
    ]
    show(table("", ["accelerator", "provider", "kind", ">USD/GPU-h", ">offers"], rows))
