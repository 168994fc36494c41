"""`tenfold objects expand|drain|replace|rebalance`: change backends during use."""

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
from tenfold.cli.output import print_note
from tenfold.model.errors import InputError, NoAnswer, Refused

if TYPE_CHECKING:
    from tenfold.objects.tiers.namespace import Namespace

TierName = Annotated[str, Parameter(help="Only this tier (default: all)")]


def expand_command(
    tier: TierName = "",
    *,
    folder: Folder,
    tiers: TierFile = None,
    limit: Limit = "",
    as_json: Json = False,
) -> None:
    """Use the backends that were added to `tiers.toml`, and give them their share of the data.

    Running servers pick up changes within a second. A backend that was drained is used again.
    """
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415
    from tenfold.objects.tiers.operations.drain import reuse_drained  # noqa: PLC0415
    from tenfold.objects.tiers.operations.rebalance import rebalance  # noqa: PLC0415

    with opened_namespace(folder, tiers, moves=True) as namespace:
        _check_tier(namespace, tier)
        used = reuse_drained(namespace.store, namespace.states, tier)
        done = asyncio.run(rebalance(namespace.mover(bytes_per_s(limit)), tier))
    show_progress(done, as_json=as_json, used_again=used)


def rebalance_command(
    tier: TierName = "",
    *,
    folder: Folder,
    tiers: TierFile = None,
    limit: Limit = "",
    as_json: Json = False,
) -> None:
    """Move shards to their assigned backends, and recreate missing ones.

    Run it after a weight, a domain or the redundancy of a tier was changed in `tiers.toml`.
    """
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415
    from tenfold.objects.tiers.operations.rebalance import rebalance  # noqa: PLC0415

    with opened_namespace(folder, tiers, moves=True) as namespace:
        _check_tier(namespace, tier)
        done = asyncio.run(rebalance(namespace.mover(bytes_per_s(limit)), tier))
    show_progress(done, as_json=as_json)


def drain_command(
    name: Annotated[str, Parameter(help="Name of a backend, or of a tier with --to")],
    *,
    folder: Folder,
    tiers: TierFile = None,
    to: Annotated[str, Parameter(help="Tier to drain a whole tier into")] = "",
    limit: Limit = "",
    as_json: Json = False,
) -> None:
    """Move everything off a backend, or a whole tier into another, so that it can be removed.

    New objects avoid it at once. Afterwards delete it from `tiers.toml`.
    """
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415

    with opened_namespace(folder, tiers, moves=True) as namespace:
        known = namespace.store.tiers
        if name in known:
            names = [slot.backend.name for slot in known[name].slots]
            if not to or to == name or to not in known:
                others = [f"`{one}`" for one in known if one != name]
                raise InputError(
                    "tier-unknown",
                    f"`{name}` is a whole tier: `--to` must be another tier",
                    f"use one of {', '.join(others)}" if others else "add another tier first",
                    field="--to",
                )
            _drain(namespace, names, (name, to), {}, bytes_per_s(limit), as_json=as_json)
            return
        if to:
            raise Refused(
                "drain-to-tier",
                f"`--to {to}` applies to a whole tier, and `{name}` is a backend",
                "drop `--to`: the shards of a backend stay in their tier",
            )
        _drain(namespace, [name], None, {}, bytes_per_s(limit), as_json=as_json)


def replace_command(
    old: Annotated[str, Parameter(help="Backend to take out of use; it may be broken")],
    new: Annotated[str, Parameter(help="Backend that takes its shards")],
    *,
    folder: Folder,
    tiers: TierFile = None,
    limit: Limit = "",
    as_json: Json = False,
) -> None:
    """Move the shards of a backend to a new one of its tier; unreadable ones are rebuilt.

    Add the new backend to `tiers.toml` first, and remove the old one from it afterwards.
    """
    from tenfold.objects.tiers.namespace import opened_namespace  # noqa: PLC0415

    with opened_namespace(folder, tiers, moves=True) as namespace:
        tier_of = {
            slot.backend.name: tier.name
            for tier in namespace.store.tiers.values()
            for slot in tier.slots
        }
        if tier_of.get(old) is None or tier_of.get(old) != tier_of.get(new) or old == new:
            raise InputError(
                "backend-unknown",
                f"`{old}` and `{new}` are not backends of the same tier",
                "add the new backend to the tier of the old one in `tiers.toml`",
            )
        _drain(namespace, [old], None, {old: new}, bytes_per_s(limit), as_json=as_json)


def _drain(
    namespace: "Namespace",
    names: list[str],
    whole: tuple[str, str] | None,
    preferred: dict[str, str],
    rate: float,
    *,
    as_json: bool,
) -> None:
    from tenfold.objects.tiers.operations.drain import (  # noqa: PLC0415
        begin_drain,
        drain_fully,
        refuse_impossible,
    )

    mover = namespace.mover(rate)
    if whole is None:
        refuse_impossible(mover, names)
    begin_drain(mover, namespace.states, names, whole[1] if whole else "")
    done, left = asyncio.run(
        drain_fully(mover, namespace.states, names, tiers=whole, preferred=preferred)
    )
    show_progress(done, as_json=as_json, left=left)
    if left:
        raise NoAnswer(
            "not-drained",
            f"{left:,} blobs or uploads are still on {', '.join(names)}",
            "run the same command again; it continues",
        )
    what = f"tier `{whole[0]}`" if whole else ", ".join(f"backend `{name}`" for name in names)
    print_note(f"{what} is drained; remove it from tiers.toml")


def _check_tier(namespace: "Namespace", tier: str) -> None:
    if tier:
        namespace.store.tier(tier)
