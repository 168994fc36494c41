"""`tenfold objects scrub|rebuild`: check every shard, and write again what is lost."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Json
from tenfold.cli.objects.tiers.options import (
    Folder,
    Limit,
    TierFile,
    bytes_per_s,
    show_progress,
)
from tenfold.cli.output import complain, print_json, show
from tenfold.cli.quantities import parse_duration
from tenfold.model.errors import InputError, NoAnswer
from tenfold.report.figures import file_bytes

if TYPE_CHECKING:
    from tenfold.objects.tiers.operations.rebuild import CatalogReport
    from tenfold.objects.tiers.operations.scrub import ScrubReport


def scrub_command(
    tier: Annotated[str, Parameter(help="Only this tier (default: all)")] = "",
    *,
    folder: Folder,
    tiers: TierFile = None,
    garbage_age: Annotated[
        str, Parameter(help="Minimum age of unused files to remove (default: 1d)")
    ] = "1d",
    limit: Limit = "",
    as_json: Json = False,
) -> None:
    """Read every shard, repair damaged and missing ones, and remove files that nothing uses.

    Exit status 1 means that objects are lost, or that repairs failed.
    """
    from tenfold.clock.wall import now_ms  # noqa: PLC0415
    from tenfold.objects.tiers.mover import delete_due  # noqa: PLC0415
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415
    from tenfold.objects.tiers.operations.scrub import remove_garbage, scrub  # noqa: PLC0415

    age_ms = round(parse_duration(garbage_age, "--garbage-age") * 1000)

    with opened_namespace(folder, tiers, moves=True) as namespace:
        if tier:
            namespace.store.tier(tier)

        async def run() -> "ScrubReport":
            mover = namespace.mover(bytes_per_s(limit))
            report = await scrub(mover, tier)
            await delete_due(namespace.store, namespace.moves, now_ms())
            await remove_garbage(mover, report, now_ms() - age_ms)
            return report

        report = asyncio.run(run())
    _show_scrub(report, as_json=as_json)


def rebuild_command(
    backend: Annotated[
        str, Parameter(help="Backend whose disk was replaced with an empty one")
    ] = "",
    *,
    folder: Folder,
    tiers: TierFile = None,
    catalog: Annotated[
        bool, Parameter(negative="", help="Rebuild lost catalogue rows from the shards")
    ] = False,
    limit: Limit = "",
    as_json: Json = False,
) -> None:
    """Rebuild the shards of a replaced disk, or the catalogue from the shards."""
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415
    from tenfold.objects.tiers.operations.rebuild import (  # noqa: PLC0415
        accept_new_disk,
        rebuild_backend,
        rebuild_catalog,
    )

    if bool(backend) == catalog:
        raise InputError(
            "rebuild-what",
            "rebuild takes either a backend or `--catalog`",
            "name the backend whose disk was replaced, or give `--catalog`",
        )
    with opened_namespace(folder, tiers, moves=True) as namespace:
        if catalog:
            report = asyncio.run(rebuild_catalog(namespace.store, namespace.moves))
            _show_catalog(report, as_json=as_json)
            return
        accept_new_disk(namespace.store, namespace.states, backend)
        done = asyncio.run(rebuild_backend(namespace.mover(bytes_per_s(limit)), backend))
    show_progress(done, as_json=as_json)


def _show_scrub(report: "ScrubReport", *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        show(
            f"{report.progress.blobs:,} blobs checked,"
            f" {file_bytes(report.progress.bytes_looked_at)}",
            f"shards damaged {report.damaged:,}, missing {report.missing:,},"
            f" never written {report.unwritten:,}, on unreachable backends"
            f" {report.unreachable:,}; repaired {report.repaired:,}",
            f"unused files removed {report.garbage:,}, {file_bytes(report.garbage_bytes)}",
        )
        for one in report.progress.problems:
            complain(f"warning: {one.key}: {one.problem}")
    if report.lost:
        raise NoAnswer(
            "objects-lost",
            f"{len(report.lost):,} objects have too few intact shards, such as `{report.lost[0]}`",
            "bring back backends that are missing; restore the others from a copy",
        )
    if report.progress.failed:
        raise NoAnswer(
            "objects-not-moved",
            f"{report.progress.failed:,} blobs could not be repaired",
            "look at the warnings, then run the same command again",
        )


def _show_catalog(report: "CatalogReport", *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        show(
            f"{report.blobs:,} blobs found: {report.inserted:,} objects restored,"
            f" {report.known:,} already in the catalogue, {report.parts_of_uploads:,} upload parts"
        )
        for name in report.backends_not_read:
            complain(f"warning: backend `{name}` could not be read")
    if report.unreadable or report.undescribed:
        raise NoAnswer(
            "objects-lost",
            f"{len(report.unreadable):,} blobs have too few shards, and"
            f" {len(report.undescribed):,} have no readable description",
            "bring back backends that are missing, and run the same command again",
        )
