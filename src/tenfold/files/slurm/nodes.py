"""Read the nodes of a Slurm cluster from the output of Slurm's own commands.

A `slurm.conf` is read too. Three formats of output are supported: the JSON of
`scontrol show nodes` (and of `sinfo` up to 22.05), the JSON of newer `sinfo`, with one entry for
each group of nodes in each partition, and the plain text of `scontrol`. All are converted to the
first.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from tenfold.files.core.document import Table, read_text
from tenfold.files.core.export_json import (
    number_at,
    read_json,
    table_at,
    tables_at,
    text_at,
    words_at,
)
from tenfold.files.inventory.checks import check_inventory
from tenfold.files.slurm.conf_nodes import is_slurm_conf, read_conf_nodes
from tenfold.files.slurm.text import read_node_text
from tenfold.files.traces.named_rows import timestamp_text
from tenfold.model.errors import InputError
from tenfold.model.fleet.inventory import Inventory, InventoryNode, SoftwareFacts

COMMAND = "scontrol show nodes --json"
UNNAMED = "slurm"
"""The name of a fleet whose source does not name its cluster."""
UNUSABLE_STATES = (
    "DOWN",
    "DRAIN",
    "DRAINED",
    "DRAINING",
    "ERROR",
    "FAIL",
    "FAILING",
    "FUTURE",
    "INVAL",
    "INVALID",
    "INVALID_REG",
    "NO_RESPOND",
    "NOT_RESPONDING",
    "UNKNOWN",
)
# `sinfo` appends a mark to the state; `*` is a node that does not respond.
_STATE_MARKS = "*~#!%$@^-"
_GRES_COMMA = re.compile(r",(?![^()]*\))")
_SINCE = re.compile(r"\[(?P<who>[^\[\]@]+)@(?P<at>\d{9,11})\]\Z")
_GRES_GPU = re.compile(r"gpu(?::(?P<type>[^:()]+))?(?::(?P<count>\d+))?(?:\(.*\))?\Z")


def read_slurm_file(path: Path, size_max_bytes: int) -> Inventory:
    """Return the nodes in a file: a `slurm.conf`, or saved output of `scontrol` or `sinfo`."""
    text, file = read_text(path, size_max_bytes), str(path)
    if _is_json(text) or not is_slurm_conf(text):
        return read_slurm_nodes(text, file)
    cluster, tables = read_conf_nodes(path)
    return _inventory(tables, file, cluster, "`slurm.conf`, nodes as configured")


def read_slurm_nodes(text: str, file: str) -> Inventory:
    """Return the nodes in the output of `scontrol show nodes` or `sinfo --json`."""
    tables, cluster, format = node_tables(text, file)
    return _inventory(tables, file, cluster, format)


def node_tables(text: str, file: str) -> tuple[list[Table], str, str]:
    """Return a table for each node, the cluster's name if known, and the format."""
    if not _is_json(text):
        return read_node_text(text, file), "", "`scontrol show nodes` output"
    values = read_json(text, file, COMMAND)
    command = "scontrol show nodes" if isinstance(values.get("nodes"), list) else "sinfo"
    cluster = text_at(table_at(table_at(values, "meta"), "slurm"), "cluster")
    return _node_tables(values, file), cluster, f"`{command} --json` output"


def _is_json(text: str) -> bool:
    return text.lstrip("\ufeff \t\r\n").startswith(("{", "["))


def _inventory(tables: Iterable[Table], file: str, name: str, format: str) -> Inventory:
    notes: list[str] = []
    nodes = tuple(_node(table, file, notes) for table in tables)
    check_inventory(nodes, file)
    return Inventory(
        source=file, name=name or UNNAMED, nodes=nodes, notes=tuple(notes), format=format
    )


def _node_tables(values: Table, file: str) -> list[Table]:
    if isinstance(values.get("nodes"), list):
        return tables_at(values, "nodes")
    if isinstance(values.get("sinfo"), list):
        return list(_expand_groups(tables_at(values, "sinfo"), file))
    raise InputError(
        "not-slurm-nodes",
        f"`{file}` is JSON, but has no `nodes` or `sinfo` list",
        f"export it with `{COMMAND}`",
        file=file,
    )


def _expand_groups(rows: Iterable[Table], file: str) -> Iterable[Table]:
    """Return one table per node from entries that describe groups of nodes."""
    found: dict[str, Table] = {}
    for row in rows:
        partition = text_at(table_at(row, "partition"), "name")
        for name in words_at(table_at(row, "nodes"), "nodes"):
            node = found.setdefault(name, {**_group(row, name, file), "partitions": []})
            partitions = words_at(node, "partitions")
            if partition and partition not in partitions:
                node["partitions"] = [*partitions, partition]
    return found.values()


def _group(row: Table, name: str, file: str) -> Table:
    where = f"node `{name}`"
    cpus, members = table_at(row, "cpus"), table_at(row, "nodes")
    cpus_each = number_at(cpus, "maximum", where, file)
    if not cpus_each:
        total = number_at(members, "total", where, file) or 1.0
        cpus_each = number_at(cpus, "total", where, file) / total
    gres = table_at(row, "gres")
    return {
        "name": name,
        "cpus": cpus_each,
        "real_memory": number_at(table_at(row, "memory"), "maximum", where, file),
        "gres": text_at(gres, "total") or text_at(row, "gres"),
        "state": table_at(row, "node").get("state"),
        "features": words_at(table_at(row, "features"), "total"),
        "reason": text_at(table_at(row, "reason"), "description"),
    }


def _node(table: Table, file: str, notes: list[str]) -> InventoryNode:
    name = text_at(table, "name")
    where = f"node `{name}`" if name else "a node without a name"
    accelerator, gpus = gpus_of_gres(text_at(table, "gres"), where, file, notes)
    labels = {
        "features": ",".join(words_at(table, "features")),
        "partitions": ",".join(words_at(table, "partitions")),
    }
    why = why_unusable_of(table)
    return InventoryNode(
        name=name,
        accelerator=accelerator,
        gpus=gpus,
        cpus=max(1, round(number_at(table, "cpus", where, file))),
        memory_gib=number_at(table, "real_memory", where, file) / 1024,
        labels={key: value for key, value in labels.items() if value},
        usable=not why,
        why_unusable=why,
        software=_software(table),
    )


def gpus_of_gres(gres: str, where: str, file: str, notes: list[str]) -> tuple[str | None, int]:
    """Return the GPU type and count of a `Gres` text such as `gpu:h100:8(S:0-1)`."""
    counts: dict[str, int] = {}
    for part in _GRES_COMMA.split(gres):
        if part.strip().partition(":")[0].partition("(")[0] != "gpu":
            continue
        match = _GRES_GPU.match(part.strip())
        if match is None or len(match["count"] or "") > 9:
            raise InputError(
                "wrong-value",
                f"`gres` of {where} in `{file}` is `{part.strip()[:60]}`, which has no GPU count",
                "write it as `gpu:h100:8`",
                file=file,
                field="gres",
            )
        kind, count = match["type"] or "", match["count"]
        if count is None and kind.isascii() and kind.isdigit() and len(kind) <= 9:
            kind, count = "", kind
        counts[kind] = counts.get(kind, 0) + (1 if count is None else int(count))
    if not sum(counts.values()):
        return None, 0
    most = max(counts, key=lambda kind: counts[kind])
    others = [f"{count} `{kind}`" for kind, count in counts.items() if kind != most and count]
    if others:
        notes.append(f"{where} also has {', '.join(others)}, ignored: a pool has one GPU type")
    return most or None, counts[most]


def why_unusable_of(table: Table) -> str:
    """Return why no job can start on a node; empty if one can."""
    stated = table.get("state")
    states = [stated] if isinstance(stated, str) else words_at(table, "state")
    states = [*states, *words_at(table, "state_flags")]
    unresponsive = any("*" in state for state in states)
    names = [state.rstrip(_STATE_MARKS).upper() for part in states for state in part.split("+")]
    bad = [state for state in names if state in UNUSABLE_STATES]
    if unresponsive and not bad:
        bad = ["NOT_RESPONDING"]
    if not bad:
        return ""
    reason = _SINCE.sub(_since_text, text_at(table, "reason"))
    summary = "+".join(state.lower() for state in dict.fromkeys(bad))
    return f"{summary}: {reason}" if reason else summary


def _since_text(found: re.Match[str]) -> str:
    """Return since when a reason holds; with `SLURM_TIME_FORMAT=%s` Slurm prints a bare number."""
    return f"[{found['who']}@{timestamp_text(float(found['at']))} UTC]"


def _software(table: Table) -> SoftwareFacts:
    system = text_at(table, "operating_system").split()
    version = text_at(table, "version") or text_at(table, "slurmd_version")
    return SoftwareFacts(
        # Slurm prints the output of `uname`: kernel name, release and build.
        kernel=system[1] if len(system) > 1 else "",
        orchestrators=(f"slurm {version}",) if version else (),
    )
