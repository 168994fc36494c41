"""Record how a workload runs, and compare later runs with the record."""

from pathlib import Path

from msgspec import Struct

from tenfold.clock.wall import now_ms
from tenfold.decide.detect.regression import STEPS_MIN, judge
from tenfold.decide.detect.verdict import AlarmRule, Judgement
from tenfold.files.measured.baselines import BaselineStore, one_writer, read_store, write_store
from tenfold.files.measured.read import read_measured
from tenfold.files.measured.reading import Reading
from tenfold.model.baseline import Baseline, Steps, kind_of
from tenfold.model.errors import InputError

MAY_DIFFER = ("stack",)
"""What a check is often about: the same work on the same GPUs under newer software."""


class Check(Struct, frozen=True, kw_only=True):
    """A run held against a baseline."""

    workload: str
    baseline: Baseline
    reading: Reading
    judgement: Judgement
    notes: tuple[str, ...]


def record(
    workload: str, measured: Path, store: Path, *, skip: int = 0, note: str = ""
) -> tuple[Baseline, tuple[str, ...]]:
    """Add a run to the baselines of a workload; return it with what a reader should know."""
    _check_name(workload)
    reading = _read(measured, skip)
    with one_writer(store):
        known = read_store(store) if store.exists() else BaselineStore()
        baseline = Baseline(
            number=len(known.of(workload)) + 1,
            recorded_at_ms=now_ms(),
            source=measured.name,
            measured=reading.measured,
            keys=reading.keys,
            note=note,
        )
        write_store(store, known.plus(workload, baseline))
    return baseline, reading.notes


def check(
    workload: str,
    measured: Path,
    store: Path,
    rule: AlarmRule,
    *,
    against: int | None = None,
    skip: int = 0,
) -> Check:
    """Compare a run with the newest baseline of its kind, or with the one named."""
    reading = _read(measured, skip)
    baseline = _pick(workload, store, reading, against)
    notes = [*_differences(baseline, reading, workload), *reading.notes]
    judgement = judge(baseline.measured, reading.measured, rule)
    return Check(
        workload=workload,
        baseline=baseline,
        reading=reading,
        judgement=judgement,
        notes=(*notes, *judgement.notes),
    )


def baselines_of(workload: str, store: Path) -> tuple[Baseline, ...]:
    """Return the baselines of a workload, oldest first; there is at least one."""
    known = read_store(store)
    found = known.of(workload)
    if not found:
        names = ", ".join(f"`{name}`" for name in sorted(known.workloads)) or "none"
        raise InputError(
            "no-baseline",
            f"`{store}` has no baseline for `{workload}`",
            f"record one with `tenfold baseline record`; known workloads: {names}",
            file=str(store),
        )
    return found


def _read(path: Path, skip: int) -> Reading:
    reading = read_measured(path, skip)
    steps = reading.measured
    if isinstance(steps, Steps) and steps.count < STEPS_MIN:
        left = f" after {skip} skipped" if skip else ""
        raise InputError(
            "too-few-steps",
            f"`{path}` has {steps.count} steps{left}; at least {STEPS_MIN} are needed",
            "run longer, or skip fewer steps",
            file=str(path),
        )
    return reading


def _pick(workload: str, store: Path, reading: Reading, against: int | None) -> Baseline:
    found = baselines_of(workload, store)
    kind = kind_of(reading.measured)
    alike = [one for one in found if kind_of(one.measured) == kind]
    if against is None:
        if alike:
            return alike[-1]
        raise InputError(
            "not-comparable",
            f"`{workload}` has no baseline for {kind}, only for "
            f"{', '.join(dict.fromkeys(kind_of(one.measured) for one in found))}",
            "check a file of that kind, or record this one first",
            file=str(store),
        )
    named = next((one for one in found if one.number == against), None)
    if named is None:
        raise InputError(
            "no-baseline",
            f"`{workload}` has no baseline {against}",
            f"use `--against` with a number from 1 to {len(found)}",
            file=str(store),
            field="--against",
        )
    if kind_of(named.measured) != kind:
        raise InputError(
            "not-comparable",
            f"baseline {against} for `{workload}` contains {kind_of(named.measured)}, "
            f"but this file contains {kind}",
            "choose a baseline of the same kind",
            file=str(store),
        )
    return named


def _differences(baseline: Baseline, reading: Reading, workload: str) -> list[str]:
    """Refuse a run of something else; say where only the software differs."""
    notes: list[str] = []
    for key in baseline.keys:
        before, now = baseline.keys[key], reading.keys.get(key)
        if now is None or now == before:
            continue
        if key not in MAY_DIFFER:
            raise InputError(
                "not-comparable",
                f"`{key}` is `{now}`, but baseline {baseline.number} of `{workload}` "
                f"has `{before}`",
                "record this run under another workload name",
                field=key,
            )
        notes.append(f"{key} is {now}, was {before}")
    return notes


def _check_name(workload: str) -> None:
    if not workload.strip() or len(workload) > 200 or not workload.isprintable():
        raise InputError(
            "bad-name",
            "a workload name must have 1 to 200 printable characters",
            "for example `llm-7b-pretrain`",
            field="WORKLOAD",
        )
