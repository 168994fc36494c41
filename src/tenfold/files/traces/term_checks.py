"""Problems with the terms of a row, each with column, code, message and hint."""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from tenfold.files.traces.columns import TermColumns
from tenfold.files.traces.terms import NO, YES, array_sizes, cell, members, names
from tenfold.model.fleet.constraints import LEVELS, TopologyMode
from tenfold.model.job.job import WHOLE
from tenfold.model.job.terms import JobKind

Problem = tuple[str, str, str, str]
"""The column, a code, what is wrong and what to do."""

ARRAY_MAX = 100_000
KINDS: tuple[str, ...] = get_args(JobKind)
SPREAD_MODES: tuple[str, ...] = get_args(TopologyMode)


class TermChecks:
    """Checks the terms of each row, and dependencies between rows."""

    def __init__(self, columns: TermColumns, ids: Sequence[str]) -> None:
        self._columns = columns
        self._ids = ids
        sizes = array_sizes(columns, ids)
        self._job_ids = frozenset(ids)
        self._known: frozenset[str] = self._job_ids
        if columns.after is not None and sizes:
            valid = {name: size for name, size in sizes.items() if 0 < size <= ARRAY_MAX}
            array_members = (one for name, size in valid.items() for one in members(name, size))
            self._known = self._job_ids.union(array_members)
        self._in_cycle = _jobs_in_cycles(_dependencies(columns, ids))

    def problems(self, row: int, gpus_milli: int, per_node_milli: int | None) -> Iterator[Problem]:
        """Yield what is wrong with the terms of a row that requests so many GPUs."""
        for name, cells in self._columns.numbers().items():
            if row in cells.bad:
                shown = f"`{name}` holds `{cells.bad[row][:40]}`, which is not a valid number"
                yield (
                    name,
                    "not-a-number",
                    shown,
                    "write a plain number; the unit is in the column name",
                )
        yield from self._words(row)
        yield from self._amounts(row)
        yield from self._elastic(row, gpus_milli, per_node_milli)
        yield from self._array(row)
        yield from self._order(row)

    def is_elastic(self, row: int) -> bool:
        """Return whether a row requests more or fewer GPUs than it names."""
        columns = self._columns
        return cell(columns.least_milli, row) is not None or (
            cell(columns.most_milli, row) is not None
        )

    def _words(self, row: int) -> Iterator[Problem]:
        columns = self._columns
        for name, cells, words in (
            ("kind", columns.kind, KINDS),
            ("preemptible", columns.preemptible, (*YES, *NO)),
            ("off_peak", columns.off_peak, (*YES, *NO)),
            ("within", columns.within, LEVELS),
            ("how", columns.how, SPREAD_MODES),
        ):
            word = cell(cells, row)
            if word is None or (word.lower() if YES[0] in words else word) in words:
                continue
            shown = f"`{name}` has the unknown value `{word[:40]}`"
            known = ("yes", "no") if YES[0] in words else words
            yield name, "wrong-value", shown, f"use one of {', '.join(known)}"

    def _amounts(self, row: int) -> Iterator[Problem]:
        columns = self._columns
        every, busy = cell(columns.checkpoint_every_ms, row), cell(columns.busy_ms, row)
        if every is not None and every <= 0:
            shown = f"`checkpoint_every_s` must be positive, got {_shown(every)}"
            yield (
                "checkpoint_every_s",
                "wrong-value",
                shown,
                "leave it empty to save a checkpoint only before a stop",
            )
        if busy is not None and busy < 0:
            shown = f"`busy_s` must not be negative, got {_shown(busy)}"
            yield (
                "busy_s",
                "wrong-value",
                shown,
                "leave it empty if the session is busy until its end",
            )

    def _elastic(self, row: int, gpus_milli: int, per_node_milli: int | None) -> Iterator[Problem]:
        if not self.is_elastic(row):
            return
        least, most = cell(self._columns.least_milli, row), cell(self._columns.most_milli, row)
        hint = "set `least_gpus` to at most `gpus`, and `most_gpus` to at least `gpus`"
        if gpus_milli < WHOLE:
            shown = f"a job with {_shown(gpus_milli)} GPUs cannot be elastic"
            yield "least_gpus", "wrong-value", shown, "leave `least_gpus` and `most_gpus` empty"
            return
        for name, value in (("least_gpus", least), ("most_gpus", most)):
            if value is not None and (value < WHOLE or value % WHOLE):
                shown = f"`{name}` must be a whole number of GPUs, got {_shown(value)}"
                yield name, "wrong-value", shown, hint
            elif value is not None and per_node_milli and value % per_node_milli:
                per_node = _shown(per_node_milli)
                yield (
                    name,
                    "wrong-value",
                    f"`{name}` is {_shown(value)}, which nodes of {per_node} GPUs cannot provide",
                    "write a multiple of `gpus_per_node`",
                )
        if least is not None and least > gpus_milli:
            shown = f"`least_gpus` is {_shown(least)}, more than `gpus` ({_shown(gpus_milli)})"
            yield "least_gpus", "wrong-value", shown, hint
        if most is not None and most < gpus_milli:
            shown = f"`most_gpus` is {_shown(most)}, less than `gpus` ({_shown(gpus_milli)})"
            yield "most_gpus", "wrong-value", shown, hint

    def _array(self, row: int) -> Iterator[Problem]:
        count = cell(self._columns.array_milli, row)
        most = cell(self._columns.array_most_milli, row)
        if most is not None and (most < 0 or most % WHOLE):
            shown = f"`array_most` must be a whole number of tasks, got {_shown(most)}"
            yield (
                "array_most",
                "wrong-value",
                shown,
                "leave it empty to allow all tasks at the same time",
            )
        if count is None:
            return
        if count < WHOLE or count % WHOLE or count > ARRAY_MAX * WHOLE:
            shown = f"`array` must be from 1 to {ARRAY_MAX:,}, got {_shown(count)}"
            yield "array", "wrong-value", shown, "leave it empty if the job is not an array"
            return
        job_id = self._ids[row]
        duplicate = next(
            (one for one in members(job_id, count // WHOLE) if one in self._job_ids), None
        )
        if duplicate is not None:
            shown = f"array `{job_id}` has a member `{duplicate}`, which is also a separate job"
            yield "job_id", "duplicate-name", shown, "give each job a unique id"

    def _order(self, row: int) -> Iterator[Problem]:
        hint = "use job ids of this table, separated by `;`"
        for name in names(self._columns.after, row):
            if name not in self._known:
                shown = f"`after` names `{name[:40]}`, which is not in this table"
                yield "after", "wrong-value", shown, hint
        if self._ids[row] in self._in_cycle:
            shown = f"job `{self._ids[row]}` can never start: its `after` dependencies form a cycle"
            yield "after", "wrong-value", shown, "remove one dependency of the cycle"


def elastic_request_problem(
    elastic: bool, cpus: float | None, memory_gib: float | None
) -> Problem | None:
    """Return the problem of an elastic job that requests CPUs or memory."""
    if not elastic or not (cpus or memory_gib):
        return None
    field = "cpus" if cpus else "mem_gib"
    shown = f"an elastic job cannot request `{field}`"
    return field, "wrong-value", shown, f"clear `{field}`, or `least_gpus` and `most_gpus`"


def _dependencies(columns: TermColumns, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the dependencies of each job; a member of an array counts as the array."""
    if columns.after is None:
        return {}
    arrays = array_sizes(columns, ids)
    dependencies: dict[str, tuple[str, ...]] = {}
    for row, job_id in enumerate(ids):
        if found := names(columns.after, row):
            dependencies[job_id] = tuple(
                name[: name.rfind("[")] if name[: name.rfind("[")] in arrays else name
                for name in found
            )
    return dependencies


def _jobs_in_cycles(dependencies: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the jobs that depend on themselves, directly or not."""
    remaining = {
        job_id: [one for one in found if one in dependencies]
        for job_id, found in dependencies.items()
    }
    waits = {job_id: len(found) for job_id, found in remaining.items()}
    dependents: dict[str, list[str]] = {}
    for job_id, found in remaining.items():
        for one in found:
            dependents.setdefault(one, []).append(job_id)
    ready = [job_id for job_id, count in waits.items() if not count]
    for job_id in ready:
        for later in dependents.get(job_id, ()):
            waits[later] -= 1
            if not waits[later]:
                ready.append(later)
    return frozenset(job_id for job_id, count in waits.items() if count)


def _shown(milli: float) -> str:
    return f"{milli / 1_000:.15g}"
