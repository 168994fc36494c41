"""`tenfold objects du`: what the buckets of an object store hold."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Json
from tenfold.cli.output import print_json, show, table
from tenfold.model.errors import InputError
from tenfold.report.figures import file_bytes


def du_command(
    *,
    folder: Annotated[Path, Parameter(name="--dir", help="Directory of the object store")],
    as_json: Json = False,
) -> None:
    """Show buckets with their team, versions and bytes."""
    from tenfold.objects.catalog.buckets import all_buckets  # noqa: PLC0415
    from tenfold.objects.catalog.schema import CATALOG_FILE, connect_to_read  # noqa: PLC0415

    path = folder / CATALOG_FILE
    if not path.exists():
        raise InputError(
            "no-object-store",
            f"there is no object store in `{folder}`",
            "give the folder that `tenfold objects serve --dir` uses",
        )
    connection = connect_to_read(path)
    try:
        buckets = all_buckets(connection)
    finally:
        connection.close()
    if as_json:
        print_json(
            [
                {
                    "bucket": one.name,
                    "team": one.team,
                    "versions": one.stored_versions,
                    "stored_bytes": one.stored_bytes,
                }
                for one in buckets
            ]
        )
        return
    rows = [
        [one.name, one.team, str(one.stored_versions), file_bytes(one.stored_bytes)]
        for one in buckets
    ]
    show(table("", ["bucket", "team", "versions", "stored"], rows))
