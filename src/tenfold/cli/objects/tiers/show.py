"""`tenfold objects tier|why`: what tiers hold, and where an object is."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from tenfold.cli.arguments import Json
from tenfold.cli.objects.tiers.options import Folder, TierFile
from tenfold.cli.output import print_json, show, table
from tenfold.model.errors import InputError, NoAnswer
from tenfold.report.figures import file_bytes

if TYPE_CHECKING:
    from tenfold.objects.tiers.operations.usage import ObjectPlace, TierUsage

tier_app = App(
    name="tier",
    help="Show storage tiers, and simulate policies for them.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
tier_app.command(
    "tenfold.cli.objects.tiers.simulate:simulate_command",
    name="simulate",
    help="Compare tiering policies on an access trace: cost, and time spent waiting for reads.",
)


@tier_app.command(name="list")
def list_command(*, folder: Folder, tiers: TierFile = None, as_json: Json = False) -> None:
    """List tiers with their backends and what they hold."""
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415
    from tenfold.objects.tiers.operations.usage import usage  # noqa: PLC0415

    with opened_namespace(folder, tiers) as namespace:
        found = asyncio.run(usage(namespace.store, namespace.states, namespace.moves))
    if as_json:
        print_json(found)
        return
    _show_tiers(found)


def why_command(
    name: Annotated[str, Parameter(help="Bucket and key, as BUCKET/KEY")],
    *,
    folder: Folder,
    tiers: TierFile = None,
    version: Annotated[str, Parameter(help="Version of the object (default: the latest)")] = "",
    as_json: Json = False,
) -> None:
    """Show which tier an object is in, where its shards are, and whether they are intact."""
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415
    from tenfold.objects.tiers.operations.usage import locate  # noqa: PLC0415

    bucket, slash, key = name.partition("/")
    if not slash or not key:
        raise InputError(
            "object-name", f"`{name}` is not an object name", "write BUCKET/KEY", field="name"
        )
    with opened_namespace(folder, tiers) as namespace:
        place = asyncio.run(locate(namespace.store, namespace.catalog, bucket, key, version))
    if place is None:
        raise NoAnswer(
            "object-unknown",
            f"there is no object `{key}` in bucket `{bucket}`",
            "check the key; a deleted object has no current version (see --version)",
        )
    if as_json:
        print_json(place)
        return
    _show_place(place)


def _show_tiers(tiers: "list[TierUsage]") -> None:
    rows: list[list[str]] = []
    for tier in tiers:
        for backend in tier.backends:
            rows.append(
                [
                    tier.name,
                    tier.layout,
                    backend.name,
                    backend.domain,
                    f"{backend.weight:g}",
                    backend.use if backend.present else "absent",
                    f"{backend.shards:,}",
                    file_bytes(backend.stored_bytes),
                ]
            )
    columns = ["tier", "layout", "backend", "domain", ">weight", "state", ">shards", ">stored"]
    show(table("", columns, rows))
    for tier in tiers:
        forwarded = tier.new_blobs_go_to
        show(
            f"{tier.name}: {tier.blobs:,} blobs, {file_bytes(tier.bytes)}"
            + (f", {tier.missing_shards:,} shards missing" if tier.missing_shards else "")
            + (f"; new blobs go to {forwarded}" if forwarded != tier.name else "")
        )


def _show_place(place: "ObjectPlace") -> None:
    show(f"{place.bucket}/{place.key}: version {place.version}, class {place.storage_class}")
    rows: list[list[str]] = []
    for blob in place.blobs:
        for shard in blob.shards:
            wanted = "yes" if shard.backend in blob.placement else "no"
            rows.append(
                [
                    blob.tier,
                    blob.layout,
                    str(shard.index),
                    shard.backend or "-",
                    wanted,
                    shard.state,
                    shard.problem,
                ]
            )
    columns = ["tier", "layout", ">shard", "backend", "placed there", "state", "problem"]
    show(table("", columns, rows))
