"""Read what is allocated on the nodes of a Slurm cluster now."""

from tenfold.files.core.document import Table
from tenfold.files.core.export_json import number_at, text_at, words_at
from tenfold.files.slurm.amounts import gpus_of_request, read_amounts
from tenfold.files.slurm.nodes import gpus_of_gres, node_tables, why_unusable_of
from tenfold.model.job.recorded import RecordedNode

_LOST = ("down", "not_responding", "no_respond", "unknown", "future")


def read_node_use(text: str, file: str) -> list[RecordedNode]:
    """Return the nodes in the output of `scontrol show nodes` or `sinfo --json`."""
    tables, _, _ = node_tables(text, file)
    return [_node(table, file) for table in tables]


def _node(table: Table, file: str) -> RecordedNode:
    name = text_at(table, "name")
    where = f"node `{name}`"
    accelerator, gpus = gpus_of_gres(text_at(table, "gres"), where, file, [])
    used = read_amounts(text_at(table, "tres_used")).gpus
    if not used:
        used = gpus_of_request(text_at(table, "gres_used").partition("(")[0])[0]
    why = why_unusable_of(table)
    return RecordedNode(
        name=name,
        gpu_type=accelerator or "",
        gpus=gpus,
        gpus_used=int(used),
        cpus=round(number_at(table, "cpus", where, file)),
        cpus_used=round(number_at(table, "alloc_cpus", where, file)),
        memory_mib=round(number_at(table, "real_memory", where, file)),
        memory_mib_used=round(number_at(table, "alloc_memory", where, file)),
        partitions=tuple(words_at(table, "partitions")),
        features=tuple(words_at(table, "features")),
        why_unusable=why,
        is_lost=any(why.startswith(word) or f"+{word}" in why for word in _LOST),
    )
