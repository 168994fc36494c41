"""Read the `key=value` text of `scontrol show jobs` into the fields of `squeue --json`.

Slurm without JSON (before 21.08, or built without it) prints nothing else. Times are seconds since
1970 where `SLURM_TIME_FORMAT=%s` was set, and else the clock of the cluster, which counts as UTC.
"""

import re
from collections.abc import Iterable

from tenfold.files.core.document import Table
from tenfold.files.slurm.times import slurm_seconds
from tenfold.files.traces.named_rows import seconds_of
from tenfold.model.errors import InputError

COMMAND = "scontrol show jobs --details"
_KEY = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z/:_]*)=")
_TO_LINE_END = ("JobName", "Command", "WorkDir", "StdErr", "StdIn", "StdOut", "Comment", "Reason")
"""Free texts: what looks like another key in them is none."""
_EMPTY = ("(null)", "N/A", "n/a", "None", "none", "Unknown", "")
_TEXTS = {
    "JobName": "name",
    "Account": "account",
    "QOS": "qos",
    "JobState": "job_state",
    "Partition": "partition",
    "NodeList": "nodes",
    "ReqNodeList": "required_nodes",
    "ExcNodeList": "excluded_nodes",
    "Features": "features",
    "Comment": "comment",
    "Dependency": "dependency",
    "Reservation": "resv_name",
    "TresPerNode": "tres_per_node",
    "TresPerJob": "tres_per_job",
    "TresPerTask": "tres_per_task",
    "TresPerSocket": "tres_per_socket",
    "ReqTRES": "tres_req_str",
    "AllocTRES": "tres_alloc_str",
}
_TIMES = {
    "SubmitTime": "submit_time",
    "EligibleTime": "eligible_time",
    "StartTime": "start_time",
    "EndTime": "end_time",
}
_WHOLE = {
    "JobId": "job_id",
    "ArrayJobId": "array_job_id",
    "Priority": "priority",
    "Nice": "nice",
    "Restarts": "restart_cnt",
    "NumTasks": "tasks",
    "HetJobId": "het_job_id",
    "HetJobOffset": "het_job_offset",
}


def read_job_text(text: str, file: str) -> list[Table]:
    """Return one table for each job, with the keys of `squeue --json`."""
    jobs: list[dict[str, str]] = []
    details: list[list[str]] = []
    for line in text.splitlines():
        values = dict(_values(line))
        if "JobId" in values:
            jobs.append({})
            details.append([])
        if not jobs:
            continue
        if "Nodes" in values and "GRES" in values:
            details[-1] += _per_node(values["Nodes"], values["GRES"])
        for key, value in values.items():
            jobs[-1].setdefault(key, value)
    if not jobs and "No jobs in the system" not in text:
        raise InputError(
            "not-slurm-queue",
            f"`{file}` has no `JobId=`",
            f"export it with `{COMMAND}`",
            file=file,
            line=1,
        )
    return [_table(one, gres, file) for one, gres in zip(jobs, details, strict=True)]


def _values(line: str) -> Iterable[tuple[str, str]]:
    keys = list(_KEY.finditer(line))
    for place, key in enumerate(keys):
        name = key.group(1)
        is_last = place + 1 == len(keys) or (name in _TO_LINE_END and name != "Reason")
        end = len(line) if is_last else keys[place + 1].start()
        yield name, line[key.end() : end].strip()
        if is_last:
            return


def _per_node(nodes: str, gres: str) -> list[str]:
    """Return the devices on each node of a line `Nodes=n[1-2] ... GRES=gpu:h100:8(IDX:0-7)`."""
    from tenfold.model.fleet import hostlist  # noqa: PLC0415

    try:
        return [gres] * len(hostlist.expand(nodes))
    except ValueError:
        return []


def _table(values: dict[str, str], details: list[str], file: str) -> Table:
    table: Table = {}
    for key, name in _TEXTS.items():
        value = values.get(key, "")
        table[name] = "" if value in _EMPTY else value
    for key, name in _WHOLE.items():
        table[name] = _whole(values.get(key, ""), key, file)
    for key, name in _TIMES.items():
        value = values.get(key, "")
        table[name] = 0 if value in _EMPTY else round(_time(value, key, file))
    table["user_name"] = values.get("UserId", "").partition("(")[0]
    # Slurm before 22.05 has one `TRES=`: what is allocated, or else what is requested.
    one = values.get("TRES", "")
    if one and one not in _EMPTY:
        name = "tres_alloc_str" if table["nodes"] else "tres_req_str"
        table[name] = table[name] or one
        table["tres_req_str"] = table["tres_req_str"] or one
    table["node_count"] = _whole(values.get("NumNodes", "").partition("-")[0], "NumNodes", file)
    if table["nodes"]:
        table["gres_detail"] = details
    limit = values.get("TimeLimit", "")
    seconds = None if limit in _EMPTY else _limit_s(limit, file)
    table["time_limit"] = {"set": seconds is not None, "number": (seconds or 0.0) / 60}
    code = values.get("ExitCode", "").partition(":")[0]
    table["exit_code"] = int(code) << 8 if code.isdecimal() else 0
    table["state_reason"] = values.get("Reason", "")
    table["hold"] = values.get("Priority") == "0"
    task = values.get("ArrayTaskId", "")
    if task.isdecimal():
        table["array_task_id"] = int(task)
    elif task:
        table["array_task_string"] = task
    if "Exclusive" in values or values.get("OverSubscribe") == "NO":
        table["exclusive"] = "exclusive"
    return table


def _whole(text: str, key: str, file: str) -> int:
    plain = text.removeprefix("-")
    if text in _EMPTY:
        return 0
    if not (plain.isascii() and plain.isdigit() and len(plain) <= 15):
        raise InputError(
            "wrong-value",
            f"`{key}` in `{file}` is `{text[:40]}`, not a whole number",
            f"export it again with `{COMMAND}`",
            file=file,
            field=key,
        )
    return int(text)


def _limit_s(text: str, file: str) -> float | None:
    try:
        return slurm_seconds(text)
    except ValueError:
        raise _not_a_time(text, "TimeLimit", file) from None


def _time(text: str, key: str, file: str) -> float:
    found = float(text) if text.isascii() and text.isdigit() else seconds_of(text)
    if found is None:
        raise _not_a_time(text, key, file)
    return found


def _not_a_time(text: str, key: str, file: str) -> InputError:
    return InputError(
        "wrong-value",
        f"`{key}` in `{file}` is `{text[:40]}`, not a time",
        f"export it again with `{COMMAND}`",
        file=file,
        field=key,
    )
