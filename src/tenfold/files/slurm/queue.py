"""Read Slurm's queue (`squeue --json`, `scontrol show jobs`) as recorded jobs.

It holds pending and running jobs, and those that just ended.
"""

import re
from collections.abc import Iterable
from typing import cast

from msgspec.structs import replace

from tenfold.files.core.document import Table
from tenfold.files.core.export_json import read_json, table_at, tables_at, text_at, words_at
from tenfold.files.slurm.amounts import Amounts, gpus_of_request, read_amounts
from tenfold.files.slurm.job_text import read_job_text
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.model.job.recorded import RecordedJob

COMMAND = "squeue --json"
_TASKS = re.compile(r"(?P<items>[\d,\-:]+)(?:%(?P<most>\d+))?\Z")
_DETAIL = re.compile(r"\([^)]*\)")
MINUTE_S = 60.0
TASKS_MOST = 100_000


def read_queue(text: str, file: str) -> list[RecordedJob]:
    """Return the jobs of a queue; each pending member of an array is one."""
    if not text.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        return [job for row in read_job_text(text, file) for job in _jobs(row, file)]
    values = read_json(text, file, COMMAND)
    if not isinstance(values.get("jobs"), list):
        raise InputError(
            "not-slurm-queue",
            f"`{file}` is JSON, but has no list `jobs`",
            f"export it with `{COMMAND}`",
            file=file,
        )
    return [job for row in tables_at(values, "jobs") for job in _jobs(row, file)]


def _jobs(row: Table, file: str) -> Iterable[RecordedJob]:
    job = _job(row, file)
    array, task = _number(row, "array_job_id"), _number(row, "array_task_id")
    if not array:
        yield job
        return
    tasks_text = text_at(row, "array_task_string")
    if tasks_text:
        numbers, most = tasks_of(tasks_text)
        for number in numbers:
            yield _member(job, f"{array:.0f}_{number}", most)
    elif task is not None:
        yield _member(job, f"{array:.0f}_{task:.0f}", 0)
    else:
        yield job


def _member(job: RecordedJob, job_id: str, most: int) -> RecordedJob:
    return replace(job, id=job_id, at_once_max=most)


def tasks_of(text: str) -> tuple[list[int], int]:
    """Return the members of a text such as `3-5,9%2`, and how many may run at once (0: all)."""
    match = _TASKS.match(text)
    if match is None:
        raise InputError("wrong-value", f"`{text[:40]}` is not a list of array tasks")
    found: list[int] = []
    for item in match["items"].split(","):
        span, _, step = item.partition(":")
        first, _, last = span.partition("-")
        found += range(int(first), int(last or first) + 1, int(step or 1))
        if len(found) > TASKS_MOST:
            raise InputError("wrong-value", f"`{text[:40]}` has more than {TASKS_MOST:,} tasks")
    return found, int(match["most"] or 0)


def _job(row: Table, file: str) -> RecordedJob:
    job_id = _number(row, "job_id") or 0.0
    state = next(iter(words_at(row, "job_state")), "unknown").lower()
    requested, held = _amounts(row, "tres_req_str", file), _amounts(row, "tres_alloc_str", file)
    per_node, types = _per_node(row)
    nodes = round(_number(row, "node_count") or requested.nodes or 1)
    names = () if state == "pending" else _names(text_at(row, "nodes"), file)
    priority = int(_number(row, "priority") or 0)
    node_gpus = _node_gpus(row, names)
    wanted = requested.gpus or _gpus_requested(row, nodes)
    held_gpus = (held.gpus or sum(node_gpus) or wanted) if names else wanted
    return RecordedJob(
        id=_id(row, job_id),
        number=int(job_id),
        user=text_at(row, "user_name"),
        account=text_at(row, "account"),
        partition=text_at(row, "partition").partition(",")[0],
        partitions=tuple(words_at(row, "partition")),
        state=state,
        name=text_at(row, "name"),
        submitted_s=_number(row, "submit_time") or 0.0,
        eligible_s=_number(row, "eligible_time") or None,
        started_s=(_number(row, "start_time") or None) if names else None,
        ended_s=None if state in ("pending", "running") else (_number(row, "end_time") or None),
        limit_s=_limit_s(row),
        nodes=nodes,
        node_names=names,
        gpus=held_gpus,
        gpus_asked=wanted or held_gpus,
        gpus_per_node_asked=per_node,
        gpu_types=types or requested.gpu_types,
        cpus=held.cpus or requested.cpus,
        memory_gib=held.memory_gib,
        memory_asked_gib=requested.memory_gib,
        node_gpus=node_gpus,
        priority=priority,
        nice=round(_number(row, "nice") or 0),
        qos=text_at(row, "qos"),
        exit_code=_exit_code(row),
        dependency=text_at(row, "dependency"),
        features=text_at(row, "features"),
        required_nodes=tuple(_names(text_at(row, "required_nodes"), file)),
        excluded_nodes=tuple(_names(text_at(row, "excluded_nodes"), file)),
        reservation=text_at(row, "resv_name"),
        # A held job has priority 0; the reason only says who held it.
        is_held=state == "pending" and (row.get("hold") is True or priority == 0),
        exclusive=_is_exclusive(row),
        restarts=int(_number(row, "restart_cnt") or 0),
        comment=text_at(row, "comment"),
        reason=text_at(row, "state_reason"),
    )


def _id(row: Table, job_id: float) -> str:
    """Return an ID as users and accounting write it: `25+1` for a part of a heterogeneous job."""
    whole = _number(row, "het_job_id")
    offset = _number(row, "het_job_offset") or 0.0
    return f"{whole:.0f}+{offset:.0f}" if whole else f"{job_id:.0f}"


def _limit_s(row: Table) -> float | None:
    limit_min = _number(row, "time_limit")
    return None if limit_min is None else limit_min * MINUTE_S


def _is_exclusive(row: Table) -> bool:
    flags = [*words_at(row, "shared"), *words_at(row, "exclusive")]
    return any(word.lower() in ("none", "exclusive", "true") for word in flags)


def _per_node(row: Table) -> tuple[int, tuple[str, ...]]:
    """Return the GPUs that a job requests of each node, and their types."""
    per_node, types = gpus_of_request(text_at(row, "tres_per_node") or text_at(row, "gres"))
    for key in ("tres_per_job", "tres_per_task", "tres_per_socket"):
        types = types or gpus_of_request(text_at(row, key))[1]
    return per_node, types


def _gpus_requested(row: Table, nodes: int) -> float:
    """Return the GPUs that a job requests in all, by the options that its user gave.

    Slurm counts them among its TRES only where `AccountingStorageTRES` names `gres/gpu`. A job
    that is over lists no devices any more, and what it requested is what it had.
    """
    times = {"tres_per_job": 1.0, "tres_per_node": nodes, "gres": nodes}
    times["tres_per_task"] = _number(row, "tasks") or 1.0
    times["tres_per_socket"] = nodes * (_number(row, "sockets_per_node") or 1.0)
    counts = {key: gpus_of_request(text_at(row, key))[0] * each for key, each in times.items()}
    return next((count for count in counts.values() if count), 0.0)


def _node_gpus(row: Table, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the GPUs on each node, such as of `gpu:h100:2(IDX:0-1)`; empty where not told."""
    details = words_of(row, "gres_detail")
    if not names or len(details) != len(names):
        return ()
    return tuple(gpus_of_request(_DETAIL.sub("", one))[0] for one in details)


def words_of(row: Table, key: str) -> list[str]:
    """Return the texts of a list, commas and all."""
    value = row.get(key)
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [item for item in items if isinstance(item, str)]


def _exit_code(row: Table) -> int | None:
    """Return the exit code: newer Slurm splits it, older gives the status of `wait`."""
    value = row.get("exit_code")
    if isinstance(value, int):
        return value >> 8
    code = _number(table_at(row, "exit_code"), "return_code")
    return None if code is None else int(code)


def _number(row: Table, key: str) -> float | None:
    """Return a number; None where it is absent, not set or infinite."""
    value = row.get(key)
    if isinstance(value, dict):
        table = table_at(row, key)
        value = table.get("number")
        if not table.get("set", True) or table.get("infinite"):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15:
        return None
    return float(value)


def _amounts(row: Table, key: str, file: str) -> Amounts:
    try:
        return read_amounts(text_at(row, key))
    except ValueError as error:
        raise _wrong(key, str(error), file) from None


def _names(text: str, file: str) -> tuple[str, ...]:
    if not text or text.lower() in ("none", "(null)"):
        return ()
    try:
        return tuple(hostlist.expand(text))
    except ValueError as error:
        raise _wrong("nodes", str(error), file) from None


def _wrong(key: str, problem: str, file: str) -> InputError:
    return InputError(
        "wrong-value",
        f"`{key}` in `{file}`: {problem}",
        f"export it again with `{COMMAND}`",
        file=file,
        field=key,
    )
