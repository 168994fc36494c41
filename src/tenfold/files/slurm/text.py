"""Read the `key=value` text of `scontrol show nodes` into the fields of its JSON.

Values may contain spaces (`OS=Linux 6.1 #1 SMP`), and free text such as a reason may contain
`key=value`, so a free-text field extends to the end of its line.
"""

import re

from tenfold.files.core.document import Table
from tenfold.model.errors import InputError

_KEY = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z_]*)=")
_FREE_TEXTS = ("Reason", "Comment", "Extra")
_NUMBERS = {
    "CPUTot": "cpus",
    "RealMemory": "real_memory",
    "CPUAlloc": "alloc_cpus",
    "AllocMem": "alloc_memory",
}
_TEXTS = {
    "NodeName": "name",
    "Gres": "gres",
    "OS": "operating_system",
    "Version": "version",
    "Reason": "reason",
    "Partitions": "partitions",
    "AvailableFeatures": "features",
    "AllocTRES": "tres_used",
}
_EMPTY = ("(null)", "N/A", "n/a", "none")


def read_node_text(text: str, file: str) -> list[Table]:
    """Return one table per node, with the keys of `scontrol show nodes --json`."""
    nodes: list[Table] = []
    for number, line in enumerate(text.splitlines(), start=1):
        values = _values(line)
        if "NodeName" in values:
            nodes.append({})
        if nodes:
            _store(values, nodes[-1], file, number)
    if not nodes:
        raise InputError(
            "not-slurm-nodes",
            "neither JSON nor text with `NodeName=`",
            "export it with `scontrol show nodes --json` (without `--json` on older Slurm)",
            file=file,
            line=1,
        )
    return nodes


def _values(line: str) -> dict[str, str]:
    values: dict[str, str] = {}
    keys = list(_KEY.finditer(line))
    for position, key in enumerate(keys):
        free = key.group(1) in _FREE_TEXTS
        last = free or position + 1 == len(keys)
        end = len(line) if last else keys[position + 1].start()
        values.setdefault(key.group(1), line[key.end() : end].strip())
        if free:
            break
    return values


def _store(values: dict[str, str], node: Table, file: str, line: int) -> None:
    for key, value in values.items():
        if value in _EMPTY or not value:
            continue
        if key in _NUMBERS:
            node.setdefault(_NUMBERS[key], _number(key, value, file, line))
        elif key == "State":
            node.setdefault("state", value.split("+"))
        elif key in _TEXTS:
            node.setdefault(_TEXTS[key], value)


def _number(key: str, value: str, file: str, line: int) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 15):
        raise InputError(
            "wrong-value",
            f"`{key}` is `{value[:40]}`, not a whole number",
            "export the file again, or fix this line",
            file=file,
            line=line,
            field=key,
        )
    return int(value)
