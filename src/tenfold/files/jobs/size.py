"""The size of a job: what `nodes`, `gpus` and `gpus_per_node` mean together.

`gpus` counts the whole job and `gpus_per_node` one node. Nothing is rounded: keys that contradict
each other, or that leave a remainder, are errors. Decision 0031 has the table.
"""

from collections.abc import Collection, Iterator

from msgspec import Struct

from tenfold.model.fleet.finding import Finding
from tenfold.model.job.spec import Elastic, JobFile, JobSpec

CPUS_PER_NODE = 1.0
"""CPUs of each node of a job that sets none."""
SIZE_KEYS = (
    "nodes",
    "gpus",
    "gpus_per_node",
    "elastic",
    "cpus_per_node",
    "memory_gib_per_node",
    "cpus",
    "mem_gib",
    "least_gpus",
    "most_gpus",
)
_PER_NODE = {
    "cpus_per_node": "cpus",
    "memory_gib_per_node": "mem_gib",
    "elastic": "least_gpus",
}
"""Per-node keys, and the columns of a job table for the whole job."""
_LEAST = {
    "gpus": (0.001, "1/1000 of a GPU"),
    "gpus_per_node": (0.001, "1/1000 of a GPU"),
    "cpus_per_node": (0.001, "1/1000 of a CPU"),
    "memory_gib_per_node": (1 / 1_024, "1 MiB"),
}
"""The smallest request of each kind; less would be nothing, and nothing is no limit."""
_WHOLE = ("cpus", "mem_gib", "least_gpus", "most_gpus")
_HINT = "see docs/reference/job-file.md for the values of each key"


class Size(Struct, frozen=True, kw_only=True):
    """Resources of the whole job."""

    gpus: float
    gpus_per_node: int | None
    """None for a single GPU, a fraction of one, or where the fleet decides."""
    cpus: float
    memory_gib: float
    least_gpus: int = 0
    most_gpus: int = 0


def size_of(row: JobSpec) -> Size:
    """Return the size of a job without errors."""
    nodes, each = _split(row)
    gpus = each * (nodes or 1) if row.gpus is None else row.gpus
    is_table = isinstance(row, JobFile) and row.gpus is not None
    elastic, cpus_each = row.elastic, row.cpus_per_node
    if cpus_each is None:
        cpus_each = 0.0 if is_table or elastic is not None else CPUS_PER_NODE
    cpus = 0.0 if elastic is not None else cpus_each * (nodes or 1)
    memory = row.memory_gib_per_node * (nodes or 1)
    least = elastic.min * int(each) if elastic else 0
    most = elastic.max * int(each) if elastic else 0
    if isinstance(row, JobFile) and is_table:
        cpus, memory = cpus or row.cpus, memory or row.mem_gib
        if (row.least_gpus, row.most_gpus) != (None, None):
            least, most = row.least_gpus or int(gpus), row.most_gpus or int(gpus)
    return Size(
        gpus=gpus,
        gpus_per_node=int(each) if each >= 1 and (gpus > 1 or least) else None,
        cpus=cpus,
        memory_gib=memory,
        least_gpus=least,
        most_gpus=most,
    )


def size_faults(row: JobSpec, given: Collection[str]) -> list[Finding]:
    """Return what is wrong with the size of a job; `given` are the keys that were set."""
    found = [*_tiny_faults(row)] or [*_gpu_faults(row)] or [*_fraction_faults(row)]
    if isinstance(row, JobFile):
        found += _table_faults(row, given)
    if row.gpus is not None and not found and _split(row)[0] is None:
        found += [
            _wrong(
                key,
                f"`{key}` is per node, but `gpus` does not say how many nodes",
                "add `nodes` or `gpus_per_node`",
            )
            for key in _PER_NODE
            if key in given
        ]
    if row.elastic is not None and not found:
        found += _elastic_faults(row, row.elastic)
    return found


def _split(row: JobSpec) -> tuple[int | None, float]:
    """Return (nodes, GPUs on each); no number of nodes where the fleet decides."""
    if row.gpus is None:
        return row.nodes or 1, row.gpus_per_node
    if row.nodes is not None:
        return row.nodes, row.gpus / row.nodes
    if row.gpus_per_node:
        return max(1, int(row.gpus / row.gpus_per_node)), min(row.gpus_per_node, row.gpus)
    return (1, row.gpus) if row.gpus <= 1 else (None, 0.0)


def _tiny_faults(row: JobSpec) -> Iterator[Finding]:
    """Yield requests that are too small to count."""
    for key, (least, text) in _LEAST.items():
        value = getattr(row, key)
        if value and value < least:
            message = f"`{key}` is {value:g}, less than {text}"
            yield _wrong(key, message, "request more, or remove it")


def _gpu_faults(row: JobSpec) -> Iterator[Finding]:
    """Yield where `gpus` contradicts the other two keys, or leaves a remainder."""
    gpus, nodes, each = row.gpus, row.nodes, row.gpus_per_node
    if gpus is None:
        return
    if gpus > 1 and gpus % 1:
        message = f"`gpus` is {gpus:g}: only a single GPU can be fractional"
        yield _wrong("gpus", message, "request whole GPUs")
    elif nodes is not None and each:
        if gpus != nodes * each:
            message = (
                f"`gpus` is {gpus:g}, but `nodes = {nodes}` and `gpus_per_node = {each:g}` "
                f"make {nodes * each:,g}"
            )
            yield _wrong("gpus", message, "remove one of the three keys")
    elif nodes is not None and (gpus % nodes or (nodes > 1 and not gpus)):
        message = f"`gpus` is {gpus:g}, which is not a multiple of {nodes:,} (`nodes`)"
        yield _wrong("gpus", message, _multiples("gpus", int(gpus), nodes))
    elif each and each % 1 == 0 and gpus % each:
        message = f"`gpus` is {gpus:g}, which is not a multiple of {each:g} (`gpus_per_node`)"
        yield _wrong("gpus", message, _multiples("gpus", int(gpus), int(each)))
    elif each % 1 and gpus != each:
        message = f"`gpus_per_node` is {each:g}: a multi-node job uses whole GPUs on each node"
        yield _wrong("gpus_per_node", message, "request whole GPUs")


def _fraction_faults(row: JobSpec) -> Iterator[Finding]:
    """Yield fractions and gangs without GPUs, in jobs that are sized by the node."""
    each, nodes = row.gpus_per_node, row.nodes or 1
    if each % 1 and (each > 1 or nodes > 1):
        message = f"`gpus_per_node` is {each:g}: only one GPU on one node can be fractional"
        yield _wrong("gpus_per_node", message, "request whole GPUs")
    if nodes > 1 and not each and row.gpus is None:
        message = (
            f"`nodes` is {nodes}, but `gpus_per_node` is 0: a multi-node job needs GPUs on "
            "each node"
        )
        yield _wrong("nodes", message, "set `gpus_per_node`, or use one node")


def _table_faults(row: JobFile, given: Collection[str]) -> Iterator[Finding]:
    """Yield what is wrong with the columns of a job table."""
    if row.gpus is None:
        for key in _WHOLE:
            if key in given:
                message = f"`{key}` is for the whole job and needs `gpus`"
                yield _wrong(key, message, "add `gpus`")
        return
    for key, other in _PER_NODE.items():
        if key in given and other in given:
            message = f"`{key}` is per node, but `{other}` is for the whole job"
            yield _wrong(key, message, "use only one of them")
    gpus = row.gpus
    if row.least_gpus is not None and row.least_gpus > gpus:
        message = f"`least_gpus` is {row.least_gpus}, more than `gpus` {gpus:g}"
        yield _wrong("least_gpus", message, _HINT)
    if row.most_gpus is not None and row.most_gpus < gpus:
        message = f"`most_gpus` is {row.most_gpus}, less than `gpus` {gpus:g}"
        yield _wrong("most_gpus", message, _HINT)


def _elastic_faults(row: JobSpec, elastic: Elastic) -> Iterator[Finding]:
    nodes, each = _split(row)
    if elastic.min > elastic.max:
        message = f"`elastic`: `min` ({elastic.min:,}) is greater than `max` ({elastic.max:,})"
        yield _wrong("elastic", message, "set `min` to at most `max`")
    elif nodes is not None and not elastic.min <= nodes <= elastic.max:
        message = (
            f"`nodes` must be from {elastic.min:,} to {elastic.max:,} (`elastic`), got {nodes:,}"
        )
        yield _wrong("elastic", message, "set `nodes` within the range, or change `elastic`")
    if not each or each % 1:
        message = "an elastic job needs whole GPUs on each node"
        yield _wrong("elastic", message, "set `gpus_per_node`")
    if row.memory_gib_per_node:
        message = "an elastic job cannot request memory"
        yield _wrong("memory_gib_per_node", message, "remove it, or remove `elastic`")


def _multiples(key: str, value: int, of: int) -> str:
    """Return the hint that names the next smaller and larger multiples."""
    below = value // of * of
    return f"use `{key} = {below}` or `{key} = {below + of}`" if below else f"use `{key} = {of}`"


def _wrong(key: str, message: str, hint: str) -> Finding:
    return Finding(code="wrong-value", message=message, hint=hint, path=(key,))
