"""Read the nodes that a `slurm.conf` defines, with the cluster's name.

Node lines hold host lists (`NodeName=gpu[01-16]`), and `NodeName=DEFAULT` sets the defaults of
those after it. The file says what is configured, not what is up now.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from tenfold.files.core.document import Table
from tenfold.files.core.export_json import words_at
from tenfold.files.slurm.conf import Setting, conf_lines
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist

_SIGNS = re.compile(
    r"^\s*(ClusterName|ControlMachine|SlurmctldHost|PartitionName|SlurmUser)\s*=", re.I | re.M
)
_NOT_A_STATE = ("unknown", "idle", "cloud")
"""States of a configuration that say nothing about whether a node is usable."""


def is_slurm_conf(text: str) -> bool:
    """Return whether a text is a `slurm.conf`, and not the output of a command."""
    return _SIGNS.search(text) is not None


def read_conf_nodes(path: Path) -> tuple[str, list[Table]]:
    """Return the cluster's name and a table per node, with the keys of `scontrol --json`."""
    cluster = ""
    defaults: dict[str, Setting] = {}
    nodes: dict[str, Table] = {}
    partitions: dict[str, list[str]] = {}
    for pairs in conf_lines(path):
        row = {pair.key.lower(): pair for pair in pairs}
        if "clustername" in row:
            cluster = row["clustername"].value
        elif "partitionname" in row:
            members = _names(row["nodes"]) if "nodes" in row else []
            partitions |= dict.fromkeys(row["partitionname"].value.split(","), members)
        elif "nodename" in row and row["nodename"].value.upper() == "DEFAULT":
            defaults = {**defaults, **row}
        elif "nodename" in row:
            nodes |= {name: _node(name, {**defaults, **row}) for name in _names(row["nodename"])}
    for name, members in partitions.items():
        for node in nodes if members == ["ALL"] else [one for one in members if one in nodes]:
            nodes[node]["partitions"] = [*words_at(nodes[node], "partitions"), name]
    if not nodes:
        raise InputError(
            "not-slurm-nodes",
            f"`{path}` is a slurm.conf without `NodeName` lines",
            "the nodes may be dynamic; import the output of `scontrol show nodes --json` instead",
            file=str(path),
        )
    return cluster, list(nodes.values())


def _names(setting: Setting) -> list[str]:
    try:
        return hostlist.expand(setting.value)
    except ValueError as error:
        raise InputError(
            "wrong-value",
            f"`{setting.key}` is `{setting.value[:60]}`: {error}",
            "write a host list, such as `gpu[01-16]`",
            file=setting.file,
            line=setting.line,
            field=setting.key,
        ) from None


def _node(name: str, row: Mapping[str, Setting]) -> Table:
    state = row["state"].value if "state" in row else "UNKNOWN"
    features = row.get("features") or row.get("feature")
    node: Table = {
        "name": name,
        "cpus": _cpus(row),
        "real_memory": _count(row.get("realmemory"), 0),
        "gres": row["gres"].value if "gres" in row else "",
        "features": features.value if features else "",
        "reason": row["reason"].value if "reason" in row else "",
    }
    if state.lower() not in _NOT_A_STATE:
        node["state"] = [state]
    return node


def _cpus(row: Mapping[str, Setting]) -> int:
    if "cpus" in row or "procs" in row:
        return _count(row.get("cpus") or row.get("procs"), 1)
    sockets = _count(row.get("boards"), 1) * _count(row.get("socketsperboard"), 1)
    sockets = _count(row.get("sockets"), sockets)
    return sockets * _count(row.get("corespersocket"), 1) * _count(row.get("threadspercore"), 1)


def _count(setting: Setting | None, default: int) -> int:
    if setting is None:
        return default
    text = setting.value
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InputError(
            "wrong-value",
            f"`{setting.key}` is `{text[:40]}`, not a whole number",
            "fix this line",
            file=setting.file,
            line=setting.line,
            field=setting.key,
        )
    return int(text)
