"""Stored records as plain values, under the names that they have on the disk.

Both sides of a comparison come from here: `make.py` wrote the expectations with it, and the tests
read with it. Fields go by their wire names, so a Python name may change freely and a wire name
may not. A reason is compared by its code and by the sentence a person reads, however it is held.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
from msgspec import NODEFAULT, UNSET, Struct
from sqlalchemy import select

from tenfold.files.records.replay_bundle import Bundle
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import image_of
from tenfold.journal import arrays, read
from tenfold.journal.policies import stretches_from
from tenfold.journal.read import latest_keys
from tenfold.journal.snapshots import fleet_at, snapshots_of
from tenfold.journal.store import Store, open_store
from tenfold.journal.tables import EVENTS, EXPORTS, SNAPSHOTS
from tenfold.model.reason import Reason

DATA = Path(__file__).parent / "data"
TOKEN = "tf_" + "stored" * 7
"""Opens the control plane of the running folder; only its digest is kept there."""


def sentence_of(reason: Reason) -> str:
    """Return what a person reads of a reason."""
    return reason.sentence


def plain(value: Any, *, defaults: bool = False) -> Any:
    """Return a decoded value as JSON would hold it; with `defaults`, what was not written too."""
    if isinstance(value, Reason):
        return {"code": value.code, "sentence": sentence_of(value)}
    if isinstance(value, Struct):
        return _fields(value, defaults=defaults)
    if isinstance(value, Mapping):
        return {str(key): plain(one, defaults=defaults) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(one, defaults=defaults) for one in value]
    return value


def _fields(value: Struct, *, defaults: bool) -> dict[str, Any]:
    config = value.__struct_config__
    found: dict[str, Any] = {}
    if config.tag_field is not None:
        found[config.tag_field] = config.tag
    for field in msgspec.structs.fields(value):
        one = getattr(value, field.name)
        if one is UNSET or (not defaults and _is_default(one, field)):
            continue
        found[field.encode_name] = plain(one, defaults=defaults)
    return found


def _is_default(value: object, field: msgspec.structs.FieldInfo) -> bool:
    if field.default is not NODEFAULT:
        return value == field.default
    if field.default_factory is not NODEFAULT:
        return value == field.default_factory()
    return False


def told_of_journal(address: str | Path) -> dict[str, list[Any]]:
    """Return all that a journal tells, as whoever uses it would read it."""
    with closing(open_store(address)) as store:
        return {
            "events": _events(store),
            "cycles": [
                [number, after, plain(cycle)]
                for number, after, cycle in read.cycles_after(store, 0, 1_000_000)
            ],
            "policies": _policies(store),
            "snapshots": _snapshots(store),
            "exports": _exports(store),
            "writers": plain(read.writers(store)),
            "jobs": plain(read.jobs(store, limit=1_000)),
            "attempts": [
                one
                for row in read.jobs(store, limit=1_000)
                for one in plain(read.attempts_of(store, [row.id])[row.id])
            ],
            "nodes": plain(read.nodes(store)),
            "arrays": [[base, plain(arrays.array(store, base))] for base in _array_names(store)],
            "keys": plain(latest_keys(store, 1_000)),
        }


def _events(store: Store) -> list[Any]:
    with store.reading() as connection:
        kinds = {row[0]: row[1] for row in connection.execute(select(EVENTS.c.seq, EVENTS.c.kind))}
    return [[seq, kinds[seq], plain(event)] for seq, event in read.events_after(store)]


def _policies(store: Store) -> list[Any]:
    with store.reading() as connection:
        return plain(stretches_from(connection, 1))


def _snapshots(store: Store) -> list[Any]:
    with store.reading() as connection:
        seqs = sorted(snapshots_of(connection))
        rows = connection.execute(select(SNAPSHOTS.c.seq, SNAPSHOTS.c.digest))
        digests = {row[0]: row[1] for row in rows}
    told: list[Any] = []
    for seq in seqs:
        fleet = fleet_at(store, seq)
        assert isinstance(fleet, Fleet), f"the snapshot after event {seq}: {fleet}"
        told.append([seq, digests[seq], plain(image_of(fleet))])
    return told


def _exports(store: Store) -> list[Any]:
    with store.reading() as connection:
        rows = connection.execute(select(EXPORTS).order_by(EXPORTS.c.last_seq)).mappings()
        found = [{**row, "file": Path(row["file"]).name} for row in rows]
    # Exports from before the digest chain have no digests.
    return [{name: one[name] for name in one if one[name] is not None} for one in found]


def _array_names(store: Store) -> list[str]:
    names = [row.id for row in read.jobs(store, limit=1_000)]
    return sorted({name.partition("[")[0] for name in names if name.endswith("]")})


def told_of_bundle(bundle: Bundle) -> dict[str, Any]:
    """Return all that a bundle tells."""
    return {
        "header": plain(bundle.header),
        "lines": plain(bundle.lines),
        "end": plain(bundle.end),
    }


def expected(name: str) -> Any:
    """Return what was read when the records were made."""
    return json.loads((DATA / f"{name}.json").read_text())


def write_expected(name: str, told: Mapping[str, Any]) -> None:
    """Write an expectation, one record a line."""
    parts: list[str] = []
    for key, value in told.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(one, separators=(",", ":")) for one in value)
            parts.append(f"{json.dumps(key)}:[\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}")
    (DATA / f"{name}.json").write_text("{" + ",\n".join(parts) + "}\n")
