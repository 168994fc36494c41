"""`tenfold fleet`: check, show, import and merge fleet files."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter, validators

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.errors import Exit
from tenfold.cli.fleet.ceiling import ceiling_command
from tenfold.cli.fleet.check import as_rows, check_files, show_checks
from tenfold.cli.fleet.import_command import discover_command, import_app, merge_command
from tenfold.cli.fleet.render import fleet_json, show_fleet
from tenfold.cli.output import print_json, print_note
from tenfold.compose.fleet import open_fleet
from tenfold.files.core.write import write_new_file
from tenfold.report.charts.rack_map import rack_views
from tenfold.report.charts.rack_svg import rack_map_svg

app = App(
    name="fleet",
    help="Check, show, import and merge fleet files.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
app.command(ceiling_command, name="ceiling")
app.command(import_app)
app.command(discover_command, name="discover")
app.command(merge_command, name="merge")
app.command(
    "tenfold.cli.fleet.domains:domains_command",
    name="domains",
    help="""Show what each failure domain would take down if it failed.

    With --jobs, a simulation places the jobs, and the output lists the jobs that each failure
    would stop, and the GPU-hours lost since their last checkpoint.
    """,
)
app.command(
    "tenfold.cli.fleet.idle:idle_command",
    name="idle",
    help="""Show allocated but idle GPUs by team and by job.

    Queries the running control plane. GPU-hours are counted from the time each job went idle.
    """,
)

AT_LEAST_ONE = validators.Number(gte=1)


@app.command
def check(
    *files: Annotated[Path, Parameter(help="Fleet files, or directories that contain them")],
    facts: Facts = None,
    strict: Annotated[
        bool, Parameter(negative="", help="Exit with status 1 if there are warnings")
    ] = False,
    as_json: Json = False,
) -> None:
    """Report all errors and warnings in fleet files, with file and line.

    Exits with status 2 if a file has errors. A syntax error hides all other
    errors in the same file.
    """
    checks = check_files(files, facts)
    faults = [found for one in checks for found in one.faults]
    warnings = [found for one in checks for found in one.warnings]
    if as_json:
        print_json({"faults": as_rows(faults), "warnings": as_rows(warnings)})
    else:
        show_checks(checks)
    raise Exit(2 if faults else 1 if strict and warnings else 0)


@app.command(name="show")
def show_command(
    file: Annotated[Path, Parameter(help="Fleet file")],
    *,
    facts: Facts = None,
    racks: Annotated[
        int,
        Parameter(
            help="Maximum number of racks in the rack map (default: 12)", validator=AT_LEAST_ONE
        ),
    ] = 12,
    svg: Annotated[Path | None, Parameter(help="Also write the rack map to this SVG file")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show a fleet: sites, pools, racks, bandwidths and totals."""
    fleet = open_fleet(file, facts)
    if svg is not None:
        picture = rack_map_svg(fleet.spec, rack_views(fleet.layout, racks), len(fleet.layout.racks))
        write_new_file(svg, picture, force=force)
        print_note(f"wrote the rack map to {svg}")
    if as_json:
        print_json(fleet_json(fleet))
    else:
        show_fleet(fleet, racks)
