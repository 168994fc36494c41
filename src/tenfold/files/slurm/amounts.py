"""Amounts of resources as Slurm writes them: `cpu=8,mem=64G,gres/gpu:h100=2`."""

import re
from typing import NamedTuple

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")
_GIB = {"K": 1 / 1024**2, "": 1 / 1024, "M": 1 / 1024, "G": 1.0, "T": 1024.0, "P": 1024.0**2}
_PER_NODE = re.compile(r"(?:gres[:/])?gpu(?::(?P<type>[A-Za-z][^:=]*))?(?:[:=](?P<count>\d+))?\Z")


class Amounts(NamedTuple):
    """What a job asks for or holds."""

    gpus: float = 0.0
    gpu_types: tuple[str, ...] = ()
    cpus: float = 0.0
    memory_gib: float = 0.0
    nodes: float = 0.0


def read_amounts(text: str) -> Amounts:
    """Return the amounts of a text; raise `ValueError` if one cannot be read."""
    plain = typed = cpus = memory_gib = nodes = 0.0
    types: list[str] = []
    for part in text.split(","):
        kind, _, amount = part.strip().partition("=")
        kind = kind.lower()
        if kind not in ("cpu", "mem", "node") and not kind.startswith("gres/gpu"):
            continue
        match = _SIZE.match(amount)
        if match is None:
            raise ValueError(f"`{part[:40]}` is not an amount")
        value = float(match[1])
        if kind == "cpu":
            cpus = value
        elif kind == "node":
            nodes = value
        elif kind == "mem":
            memory_gib = value * _GIB[match[2]]
        elif kind == "gres/gpu":
            plain = value
        elif kind.startswith("gres/gpu:"):
            typed += value
            types += [kind.partition(":")[2]] if value else []
    # The plain count holds the typed ones already.
    return Amounts(plain or typed, tuple(types), cpus, memory_gib, nodes)


def gpus_of_request(text: str) -> tuple[int, tuple[str, ...]]:
    """Return the GPUs and types of a request such as `gres:gpu:h100:2`; (0, ()) for none."""
    count, types = 0, list[str]()
    for part in text.split(","):
        match = _PER_NODE.match(part.strip())
        if match is not None:
            count += int(match["count"] or 1)
            types += [match["type"]] if match["type"] else []
    return count, tuple(types)
