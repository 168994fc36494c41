"""Compute the figures of an assessment a second time, from the raw files, and compare them.

It shares no code with the product. Sums over the record are computed anew. Simulated figures are
computed from the simulated start of each job (`--runs` of `tenfold assess`), and that no start is
before its job came is checked.

    python benchmarks/assess_recompute.py ANSWER.json RAW [RUNS.csv]

RAW is a folder of saved Slurm output, or a table of jobs as Parquet.
"""

import csv
import json
import math
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

TOLERANCE = 1e-6
HOUR = 3_600.0
WEEK = 7 * 86_400.0
LOST = {"failed", "timeout", "node_fail", "out_of_memory", "preempted", "boot_fail"}
LOOKS = 8
BRUTE_JOBS_MOST = 2_000


class Raw(NamedTuple):
    """One run as the raw file has it."""

    id: str
    user: str
    account: str
    partition: str
    state: str
    submit: float
    eligible: float
    start: float | None
    end: float | None
    gpus: float
    asked: float
    cpus: float
    limit_s: float | None
    nodes: tuple[str, ...]
    members: int
    priority: int
    length: float
    number: int = 0
    memory: float = 0.0


def gib(text: str) -> float:
    """Return the memory of `cpu=1,mem=500G` in GiB."""
    found = re.search(r"(?:^|,)mem=([\d.]+)([KMGTP]?)", text)
    if found is None:
        return 0.0
    units = {"K": 2**-20, "": 2**-10, "M": 2**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}
    return float(found[1]) * units[found[2]]


def names_of(text: str) -> tuple[str, ...]:
    """Expand the host lists that the samples use: `n1`, `n[1-2,4]`, `a1,b[1-2]`."""
    found: list[str] = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text):
        head, _, rest = part.partition("[")
        if not rest:
            found.append(head)
            continue
        for piece in rest.rstrip("]").split(","):
            first, _, last = piece.partition("-")
            width = len(first)
            numbers = range(int(first), int(last or first) + 1)
            found += [f"{head}{number:0{width}d}" for number in numbers]
    return tuple(found)


def tres(text: str, key: str) -> float:
    """Return an amount of `cpu=1,gres/gpu=2`."""
    plain = typed = 0.0
    for part in text.split(","):
        name, _, amount = part.partition("=")
        if name == key:
            plain = float(amount)
        elif name.startswith(f"{key}:"):
            typed += float(amount)
    return plain or typed


def read_sacct(folder: Path) -> list[Raw]:
    """Return the runs of a folder: accounting, and from the queue what runs now."""
    rows: dict[tuple[str, float, float | None], Raw] = {}
    for path in sorted(folder.glob("*")):
        if "|" not in path.read_text(errors="replace").partition("\n")[0]:
            continue
        for row in rows_of(path.read_text()):
            one = of_sacct(row)
            rows[one.id, one.submit, one.start] = one
    return list(rows.values())


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of a listing; the name of a job may hold bars and line breaks."""
    head, *lines = text.split("\n")
    names = head.split("|")
    place = names.index("JobName")
    found: list[dict[str, str]] = []
    taken = ""
    for line in lines:
        taken = f"{taken}\n{line}" if taken else line
        cells = taken.split("|")
        over = len(cells) - len(names)
        if over < 0:
            continue
        name = "|".join(cells[place : place + over + 1])
        cells = [*cells[:place], name, *cells[place + over + 1 :]]
        found.append(dict(zip(names, cells, strict=True)))
        taken = ""
    return found


def of_sacct(row: dict[str, str]) -> Raw:
    """Return a run of accounting."""

    def time(name: str) -> float | None:
        return float(row[name]) if row[name].isdigit() else None

    state = row["State"].split(" ")[0].lower()
    nodes = () if row["NodeList"] in ("None assigned", "") else names_of(row["NodeList"])
    asked, held = tres(row["ReqTRES"], "gres/gpu"), tres(row["AllocTRES"], "gres/gpu")
    ran = bool(nodes) and state != "pending"
    start = time("Start") if ran else None
    end = None if state in ("running", "pending") else time("End")
    members = int(row["NNodes"] or 1)
    submit = time("Submit") or 0.0
    gpus = held if ran else asked
    return Raw(
        id=row["JobID"],
        user=row["User"],
        account=row["Account"],
        partition=row["Partition"],
        state=state,
        submit=submit,
        eligible=time("Eligible") or submit,
        start=start,
        end=end,
        gpus=gpus,
        asked=asked or gpus,
        cpus=tres(row["AllocTRES"], "cpu") or tres(row["ReqTRES"], "cpu"),
        limit_s=float(row["TimelimitRaw"]) * 60 if row["TimelimitRaw"].isdigit() else None,
        nodes=nodes,
        members=members,
        priority=int(row["Priority"] or 0),
        length=0.0,
        number=int(row["JobIDRaw"]),
        memory=gib(row["AllocTRES"]),
    )


def read_parquet(path: Path) -> list[Raw]:
    """Return the runs of a table; times count from its first submission."""
    import polars as pl  # noqa: PLC0415

    table = pl.read_parquet(path).to_dicts()
    found: list[Raw] = []
    for row in table:
        start = row.get("start_s")
        submit, length = row["submit_s"], row["duration_s"]
        if start is not None and start < submit:
            start = None
        # The product keeps times in whole milliseconds from the first submission.
        submit = round(submit * 1000) / 1000
        length = round(length * 1000) / 1000
        start = None if start is None else round(start * 1000) / 1000
        found.append(
            Raw(
                id=str(row["job_id"]),
                user=row["user"] or "",
                account=row["team"] or "",
                partition=row["qos"] or "",
                state=words(row["status"]),
                submit=submit,
                eligible=submit,
                start=start,
                end=None if start is None else start + length,
                gpus=round(row["gpus"] * 1000) / 1000,
                asked=round(row["gpus"] * 1000) / 1000,
                cpus=0.0,
                limit_s=None,
                nodes=(),
                members=1,
                priority=0,
                length=length,
            )
        )
    return found


def words(status: str | None) -> str:
    """Return the state as the product names it."""
    plain = (status or "").lower()
    return {"pass": "completed", "succeeded": "completed", "killed": "cancelled"}.get(plain, plain)


class Check:
    """Compares figures and counts those that differ."""

    def __init__(self) -> None:
        self.same = 0
        self.wrong: list[str] = []

    def equal(self, name: str, shown: float | None, found: float | None) -> None:
        """Compare one figure."""
        if shown is None or found is None:
            agrees = shown is None and found is None
        else:
            agrees = math.isclose(shown, found, rel_tol=TOLERANCE, abs_tol=1e-6)
        if agrees:
            self.same += 1
        else:
            self.wrong.append(f"{name}: shown {shown}, recomputed {found}")


def percentile(values: list[float], share: float) -> float:
    """Return the nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def size(gpus: float) -> str:
    """Return the size class of a job."""
    if gpus == 0:
        return "no GPU"
    if gpus < 1:
        return "part of a GPU"
    for most, name in ((1, "1 GPU"), (4, "2-4 GPUs"), (8, "5-8 GPUs"), (32, "9-32 GPUs")):
        if gpus <= most:
            return name
    return "more than 32 GPUs"


def recompute(answer: dict[str, Any], runs: list[Raw], simulated: Path | None) -> Check:
    """Compare every figure that can be computed from the raw files."""
    check = Check()
    has_starts = any(run.start is not None for run in runs)
    ran = [run for run in runs if run.start is not None] if has_starts else runs
    since, until = answer["from_s"], answer["until_s"]
    check_use(check, answer["use"], ran, since, until, has_starts)
    waits = {
        run.id: (run, run.start - run.submit)
        for run in ran
        if run.start is not None and run.submit >= since
    }
    rows: list[dict[str, str]] = []
    if simulated is not None:
        with simulated.open() as stream:
            rows = list(csv.DictReader(stream))
    by_id = {run.id: run for run in ran}
    if not has_starts:
        waits = {
            row["job"]: (by_id[row["job"]], int(row["wait_ms"]) / 1000)
            for row in rows
            if row["job"] in by_id
        }
    check_waits(check, answer["waits"], list(waits.values()))
    if has_starts and all(run.nodes for run in ran) and len(ran) <= BRUTE_JOBS_MOST:
        check_causes(check, answer, ran, until)
    check_causes_sum(check, answer, [wait for _, wait in waits.values()])
    check_halves(check, answer, rows, by_id, has_starts)
    if answer.get("outlook"):
        check_trend(check, answer["outlook"]["trend"], ran, has_starts, until)
    check_changes(check, answer)
    return check


def gpu_hours(run: Raw, since: float, until: float) -> float:
    """Return the GPU-hours of a run in the period."""
    if run.start is None:
        return run.gpus * run.length / HOUR
    end = until if run.end is None else run.end
    return run.gpus * max(0.0, min(end, until) - max(run.start, since)) / HOUR


def check_use(
    check: Check, use: dict[str, Any], ran: list[Raw], since: float, until: float, starts: bool
) -> None:
    """Compare how full the fleet was, and what was held and not used."""
    hours = {id(run): gpu_hours(run, since, until) for run in ran}
    whole = sum(hours.values())
    available = use["gpus"] * (until - since) / HOUR
    check.equal("use.jobs", use["jobs"], len(ran))
    check.equal("use.days", use["days"], (until - since) / 86_400)
    check.equal("use.gpu_hours", use["gpu_hours"], whole)
    check.equal("use.gpu_hours_available", use["gpu_hours_available"], available)
    check.equal("use.share", use["share"], whole / available)
    for key, field in (
        ("by_account", "account"),
        ("by_user", "user"),
        ("by_partition", "partition"),
    ):
        sums: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        for run in ran:
            name = getattr(run, field) or "(none)"
            sums[name][0] += 1
            sums[name][1] += hours[id(run)]
        check.equal(f"use.{key} rows", len(use[key]), len(sums))
        for row in use[key]:
            many, sum_hours = sums[row["name"]]
            check.equal(f"use.{key}.{row['name']}.jobs", row["jobs"], many)
            check.equal(f"use.{key}.{row['name']}.gpu_hours", row["gpu_hours"], sum_hours)
            check.equal(f"use.{key}.{row['name']}.share", row["share"], sum_hours / available)
    if use["over_time"]:
        mean = sum(share for _, share in use["over_time"]) / len(use["over_time"])
        check.equal("use.over_time mean", mean, whole / available)
    held = use["held"]
    over = sum(hours[id(r)] * max(0.0, r.gpus - r.asked) / r.gpus for r in ran if r.gpus)
    check.equal("held.unrequested", held["unrequested"], over)
    lost = sum(hours[id(run)] for run in ran if run.state in LOST)
    states = any(run.state for run in ran)
    check.equal("held.lost", held["lost"], lost if states else None)
    cancelled = sum(hours[id(run)] for run in ran if run.state == "cancelled")
    check.equal("held.cancelled", held["cancelled"], cancelled if states else None)
    ratios = sorted(
        run.limit_s / (run.end - run.start)
        for run in ran
        if run.state == "completed"
        and run.limit_s
        and run.start is not None
        and run.end is not None
        and run.end - run.start >= 60
    )
    middle = ratios[(len(ratios) - 1) // 2] if ratios else None
    check.equal("held.overlong_limits", held["overlong_limits"], middle)


def check_waits(check: Check, shown: dict[str, Any], waits: list[tuple[Raw, float]]) -> None:
    """Compare the waits by account, partition and size."""
    groups: dict[str, dict[str, list[tuple[Raw, float]]]] = {
        "every": {"all jobs": waits},
        "by_account": defaultdict(list),
        "by_partition": defaultdict(list),
        "by_size": defaultdict(list),
    }
    for run, wait in waits:
        groups["by_account"][run.account or "(none)"].append((run, wait))
        groups["by_partition"][run.partition or "(none)"].append((run, wait))
        groups["by_size"][size(run.gpus)].append((run, wait))
    for key, names in groups.items():
        rows = [shown[key]] if key == "every" else shown[key]
        check.equal(f"waits.{key} rows", len(rows), len(names))
        for row in rows:
            members = names[row["name"]]
            times = [wait for _, wait in members]
            label = f"waits.{key}.{row['name']}"
            check.equal(f"{label}.jobs", row["jobs"], len(times))
            check.equal(f"{label}.mean", row["mean_s"], sum(times) / max(1, len(times)))
            check.equal(f"{label}.p50", row["p50_s"], percentile(times, 0.5))
            check.equal(f"{label}.p90", row["p90_s"], percentile(times, 0.9))
            check.equal(f"{label}.hours", row["waiting_hours"], sum(times) / HOUR)
            weighted = sum(wait * run.gpus for run, wait in members) / HOUR
            check.equal(f"{label}.gpu_hours", row["gpu_hours_waiting"], weighted)


def check_causes_sum(check: Check, answer: dict[str, Any], waits: list[float]) -> None:
    """Compare the sum of all causes with the sum of all waits, and their shares."""
    rows = answer["causes"]["rows"]
    whole = sum(row["waiting_hours"] for row in rows)
    if waits:
        spread = abs(whole - sum(waits) / HOUR)
        close = spread <= max(1e-6, 0.001 * whole)
        check.equal("causes sum to the waits", 1.0, 1.0 if close else 0.0)
    for row in rows:
        check.equal(f"causes.{row['code']}.share", row["share"], row["waiting_hours"] / whole)


def check_causes(check: Check, answer: dict[str, Any], ran: list[Raw], until: float) -> None:
    """Find the cause at each look anew, from all runs that overlap it."""
    nodes = answer["fleet_nodes"]
    found: dict[str, float] = defaultdict(float)
    for run in ran:
        assert run.start is not None
        came = min(max(run.eligible, run.submit), run.start)
        if came > run.submit:
            found["own"] += came - run.submit
        wait = run.start - came
        if wait < 60:
            found["pace"] += max(0.0, wait)
            continue
        for number in range(LOOKS):
            at = came + (number + 0.5) * wait / LOOKS
            found[cause_at(run, at, ran, nodes, until)] += wait / LOOKS
    for row in answer["causes"]["rows"]:
        hours = found.pop(row["code"], 0.0) / HOUR
        check.equal(f"causes.{row['code']}.hours", row["waiting_hours"], hours)
    for code, seconds in found.items():
        if seconds:
            check.equal(f"causes.{code}.hours", 0.0, seconds / HOUR)


def cause_at(run: Raw, at: float, ran: list[Raw], nodes: dict[str, Any], until: float) -> str:
    """Return why a run did not start at a moment."""
    gpus = {name: node["gpus"] for name, node in nodes.items()}
    cpus = {name: node["cpus"] or math.inf for name, node in nodes.items()}
    memory = {name: node["memory_gib"] or math.inf for name, node in nodes.items()}
    for other in ran:
        end = until if other.end is None else other.end
        if other.start is not None and other.start < at < end:
            each = max(1 if other.gpus else 0, round(other.gpus / len(other.nodes)))
            for name in other.nodes:
                if name in gpus:
                    gpus[name] -= each
                    cpus[name] -= other.cpus / len(other.nodes)
                    memory[name] -= other.memory / len(other.nodes)
    mine = [
        name
        for name, node in nodes.items()
        if not node["partitions"] or run.partition in node["partitions"]
    ] or list(nodes)
    per_node = math.ceil(run.gpus / run.members)
    if sum(nodes[name]["gpus"] >= per_node for name in mine) < run.members:
        return "fleet"
    fits = [name for name in mine if max(0, gpus[name]) >= per_node]
    if len(fits) < run.members:
        free = sum(max(0, gpus[name]) for name in mine)
        return "scattered" if free >= run.gpus and run.gpus else "full"
    fits = [name for name in fits if cpus[name] >= run.cpus / run.members]
    if sum(memory[name] >= run.memory / run.members - 0.5 for name in fits) < run.members:
        return "cpus"
    waiting = [
        other
        for other in ran
        if other.partition == run.partition
        and min(max(other.eligible, other.submit), other.start or 0) <= at
        and (other.start or 0) >= at
    ]
    first = min(waiting, key=queue_key)
    return "limit" if first is run else "order"


def queue_key(run: Raw) -> tuple[int, float, float, int, str]:
    """Return the place of a run in the queue: priority, then order of arrival."""
    came = min(max(run.eligible, run.submit), run.start or 0.0)
    return (-run.priority, run.submit, came, run.number, run.id)


def check_halves(
    check: Check,
    answer: dict[str, Any],
    rows: list[dict[str, str]],
    by_id: dict[str, Raw],
    has_starts: bool,
) -> None:
    """Compare the figures of both halves, recorded and simulated."""
    for one in answer["changes"]["calibrations"]:
        mine = [row for row in rows if row["half"] == one["half"]]
        if not mine:
            continue
        until = max(int(row["arrived_ms"]) for row in mine)
        waits = [int(row["wait_ms"]) / 1000 for row in mine]
        for row in mine:
            start, came = int(row["start_ms"]), int(row["arrived_ms"])
            if 0 <= start < came:
                check.equal(f"start of {row['job']} not before it came", 1.0, 0.0)
        compare_half(check, f"{one['half']}.simulated", one["simulated"], mine, waits, by_id)
        if not has_starts or one["recorded"] is None:
            continue
        real = [
            (row, max(0.0, min(started_ms(row, by_id), until) - int(row["arrived_ms"])) / 1000)
            for row in mine
            if row["job"] in by_id
        ]
        members = [row for row, _ in real]
        times = [wait for _, wait in real]
        compare_half(check, f"{one['half']}.recorded", one["recorded"], members, times, by_id)
        error = max(
            apart(sum(times) / len(times), sum(waits) / len(waits)),
            apart(
                one["recorded"]["gpu_hours_waiting"] * HOUR / one["recorded"]["jobs"],
                one["simulated"]["gpu_hours_waiting"] * HOUR / one["simulated"]["jobs"],
            ),
        )
        check.equal(f"{one['half']}.error", one["error"], error)


def started_ms(row: dict[str, str], by_id: dict[str, Raw]) -> float:
    """Return the recorded start on the clock of the simulation."""
    run = by_id[row["job"]]
    came = min(max(run.eligible, run.submit), run.start or 0.0)
    return int(row["arrived_ms"]) + round(((run.start or 0.0) - came) * 1000)


def compare_half(
    check: Check,
    label: str,
    shown: dict[str, Any],
    rows: list[dict[str, str]],
    waits: list[float],
    by_id: dict[str, Raw],
) -> None:
    """Compare one half."""
    check.equal(f"{label}.jobs", shown["jobs"], len(waits))
    check.equal(f"{label}.mean", shown["mean_wait_s"], sum(waits) / len(waits))
    check.equal(f"{label}.p90", shown["p90_wait_s"], percentile(waits, 0.9))
    check.equal(f"{label}.hours", shown["waiting_hours"], sum(waits) / HOUR)
    weighted = sum(
        wait * by_id[row["job"]].gpus
        for row, wait in zip(rows, waits, strict=True)
        if row["job"] in by_id
    )
    check.equal(f"{label}.gpu_hours", shown["gpu_hours_waiting"], weighted / HOUR)


def apart(real: float, simulated: float) -> float:
    """Return the relative error of a mean wait."""
    if real < 60 and simulated < 60:
        return 0.0
    return abs(simulated - real) / max(real, 60.0)


def check_trend(
    check: Check, trend: dict[str, Any], ran: list[Raw], has_starts: bool, until: float
) -> None:
    """Compare the work of each week and the growth rate."""
    came = [
        (min(max(run.eligible, run.submit), run.start if run.start is not None else math.inf), run)
        for run in ran
    ]
    last = max(at for at, _ in came)
    weeks = int((last - min(at for at, _ in came)) // WEEK)
    sums = [0.0] * weeks
    for at, run in came:
        place = weeks - 1 - int((last - at) // WEEK)
        if 0 <= place < weeks:
            end = until if run.end is None else run.end
            length = run.length if run.start is None or not has_starts else end - run.start
            sums[place] += run.gpus * length / HOUR
    check.equal("trend.weeks", trend["weeks"], weeks)
    for place, (shown, found) in enumerate(zip(trend["gpu_hours_by_week"], sums, strict=True)):
        check.equal(f"trend.week {place + 1}", shown, found)
    if trend["per_month"] is None:
        return
    points = [(place, math.log2(one)) for place, one in enumerate(sums) if one > 0]
    slopes = sorted(
        (b[1] - a[1]) / (b[0] - a[0]) for n, a in enumerate(points) for b in points[n + 1 :]
    )
    middle = slopes[int(0.5 * (len(slopes) - 1))]
    check.equal("trend.per_month", trend["per_month"], 2 ** (middle * 30.4375 / 7) - 1)


def check_changes(check: Check, answer: dict[str, Any]) -> None:
    """Compare what changes save with the figures before and after, and their dollars."""
    for change in answer["changes"]["changes"]:
        for side in ("promised", "gave"):
            tried = change[side]
            before, after = tried["before"], tried["after"]
            label = f"{change['kind']}.{side}"
            saved = before["waiting_hours"] - after["waiting_hours"]
            check.equal(f"{label}.hours_saved", tried["hours_saved"], saved)
            weighted = before["gpu_hours_waiting"] - after["gpu_hours_waiting"]
            check.equal(f"{label}.gpu_hours_saved", tried["gpu_hours_saved"], weighted)
            if tried["share_saved"] is not None:
                check.equal(f"{label}.share", tried["share_saved"], saved / before["waiting_hours"])
        price = answer["usd_per_gpu_hour"]
        if change["kind"] == "purchase" and price is not None:
            many = re.match(r"(\d+) nodes? with (\d+) GPUs", change["name"])
            assert many is not None
            usd = int(many[1]) * int(many[2]) * price * 730
            check.equal("purchase.usd_per_month", change["usd_per_month"], usd)
    if answer["usd_held"] is not None:
        held = answer["use"]["held"]
        hours = held["unrequested"] + (held["low_cpu"] or 0.0)
        check.equal("usd_held", answer["usd_held"], hours * answer["usd_per_gpu_hour"])


def main(words: list[str]) -> int:
    """Compare and print what differs."""
    answer = json.loads(Path(words[0]).read_text())
    raw = Path(words[1])
    runs = read_sacct(raw) if raw.is_dir() else read_parquet(raw)
    check = recompute(answer, runs, Path(words[2]) if len(words) > 2 else None)
    for line in check.wrong:
        sys.stdout.write(f"DIFFERS {line}\n")
    sys.stdout.write(f"{check.same} figures agree, {len(check.wrong)} differ\n")
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
