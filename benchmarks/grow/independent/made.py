"""A made fleet: the files a user would write, the question asked, and what must come out."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Table: TypeAlias = Mapping[str, Any]
Files: TypeAlias = dict[str, str]

# What a check is about; each kind is counted on its own.
FIRST, FACTOR, INTERVAL = "first break", "factor", "interval"
ENOUGH, MINIMAL, THEN, RULE = "relief enough", "relief minimal", "then true", "rule"
KINDS = (FIRST, FACTOR, INTERVAL, ENOUGH, MINIMAL, THEN, RULE)


@dataclass(frozen=True)
class Answer:
    """What one run of `tenfold grow --json` printed."""

    status: int
    json: dict[str, Any]
    errors: str
    # The options of the question, as the fleet has them.
    asked: tuple[str, ...]
    # Ask again with other files or options; None leaves them as they are.
    again: Callable[..., "Answer"] = field(repr=False)
    text: Callable[[], str] = field(repr=False)
    # Run another command; a word that starts with `@` is a file of this fleet.
    run: Callable[..., tuple[int, str, str]] = field(repr=False)

    @property
    def body(self) -> dict[str, Any]:
        return self.json.get("answer", {})

    @property
    def first(self) -> dict[str, Any]:
        return self.body.get("first") or {}

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.body.get("rows") or []

    def layer(self, layer: str, resource: str = "") -> dict[str, Any]:
        """Return the earliest break of a layer before any fix, or an empty row."""
        found = [
            row
            for row in self.body.get("layers", [])
            if row["layer"] == layer and resource in f"{row['resource']} {row['label']}"
        ]
        return min(found, key=lambda row: row["k"] or float("inf"), default={})


@dataclass(frozen=True)
class Check:
    kind: str
    name: str
    # Return what is wrong, an empty string where all is right, or None where nothing was to judge.
    judge: Callable[[Answer], str | None]


@dataclass(frozen=True)
class Made:
    """One fleet made from a seed; `item` is the part of the subject it is about."""

    item: str
    layer: str
    files: Files
    words: Sequence[str]
    checks: Sequence[Check]


def toml(**tables: Table | Sequence[Table] | str | None) -> str:
    """Return a TOML file: a list becomes an array of tables, a mapping a table."""
    lines: list[str] = []
    for name, value in tables.items():
        if isinstance(value, str):
            lines.insert(0, f"{name} = {_value(value)}")
        elif isinstance(value, Mapping):
            lines += ["", f"[{name}]", *_pairs(value)]
        elif value is not None:
            for table in value:
                lines += ["", f"[[{name}]]", *_pairs(table)]
    return "\n".join(lines).strip() + "\n"


def _pairs(table: Table) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items() if value is not None]


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Bare):
        return value.text
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f'"{key}" = {_value(one)}' for key, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return repr(value)


@dataclass(frozen=True)
class Bare:
    """A TOML value without quotes, such as a date."""

    text: str


def job_table(rows: Sequence[Mapping[str, object]]) -> str:
    columns = list(rows[0])
    lines = [",".join(str(row[column]) for column in columns) for row in rows]
    return "\n".join([",".join(columns), *lines]) + "\n"


def near(found: float | None, wanted: float, within: float) -> bool:
    return found is not None and abs(found - wanted) <= within * wanted


def first_is(
    layer: str,
    k: float | None = None,
    within: float = 0.05,
    where: str = "",
    sample: float | None = None,
) -> list[Check]:
    """Return checks that a layer is the first to break, and at which factor."""

    def named(answer: Answer) -> str:
        said = answer.first
        if said.get("layer") != layer:
            return f"first is {_said(answer)}, not {layer}"
        if where and where not in f"{said['resource']} {said['label']}":
            return f"first is {said['label']}, not at {where}"
        return ""

    checks = [Check(FIRST, f"{layer} is first", named)]
    return checks if k is None else [*checks, first_is_at(layer, k, within, where, sample)]


def first_is_at(
    layer: str, k: float, within: float, where: str = "", sample: float | None = None
) -> Check:
    """Return a check of the factor at which a layer breaks before any fix.

    `sample` is the factor of the very sample that was given: a history is not its process, so an
    answer near either is right.
    """

    def judged(answer: Answer) -> str:
        found = answer.layer(layer, where).get("k")
        if any(near(found, true, within) for true in (k, sample) if true):
            return ""
        of_sample = f" (its sample {sample:.3g}x)" if sample else ""
        return f"{layer} at {_times(found)}, truth {k:.3g}x{of_sample}"

    return Check(FACTOR, f"{layer} at {k:.3g}x", judged)


def over_today(layer: str, where: str = "") -> list[Check]:
    """Return checks that a layer leads and is over its limit today.

    A limit that the axis does not move has no factor to rank; it leads if the first line names it.
    """

    def judged(answer: Answer) -> str:
        said, headline = answer.first, answer.body.get("sentence", "")
        title = layer.replace("-", " ").capitalize()
        if title in headline and "over its limit" in headline:
            return ""
        if said.get("layer") != layer or (
            where and where not in f"{said['resource']} {said['label']}"
        ):
            return f"first is {_said(answer)}, but {layer} is over today"
        if said["k"] is None or said["k"] > 1:
            return f"{layer} at {_times(said['k'])}, but it is over today"
        return ""

    return [Check(FIRST, f"{layer} is over today", judged)]


def covers(layer: str, k: float, where: str = "") -> Check:
    """Return a check that the range of a layer covers its true factor."""

    def judged(answer: Answer) -> str | None:
        row = answer.layer(layer, where)
        if not row or row.get("low") is None:
            return None
        high = row["high"] if row["high"] is not None else float("inf")
        return (
            ""
            if row["low"] <= k <= high
            else f"{layer} {_times(row['low'])} to {_times(high)}, truth {k:.3g}x"
        )

    return Check(INTERVAL, f"range of {layer} covers {k:.3g}x", judged)


@dataclass(frozen=True)
class Relief:
    """How much one fix of a layer adds, and what that truly does."""

    layer: str
    # Words of the fix's sentence that say its kind, such as "node".
    unit: str
    # The true factor at which the layer breaks with this much added in total.
    k_with: Callable[[int], float]
    # The files with this much added.
    files_with: Callable[[int], Files] | None = None
    # Whole things that are bought together, such as the nodes of a gang.
    step: int = 1
    # Steps by which a simulated truth and a simulated answer may differ.
    apart: int = 0
    then_within: float = 0.03


def relief_holds(relief: Relief, to: float) -> list[Check]:
    """Return checks that the first fix is enough, no more than that, and does what it says."""
    judges = {ENOUGH: _enough, MINIMAL: _minimal} | ({THEN: _then} if relief.files_with else {})

    def check(kind: str, judge: Callable[[Relief, Answer, "Fix"], str]) -> Check:
        def judged(answer: Answer) -> str:
            fix = _fix(relief, answer, to)
            return fix if isinstance(fix, str) else judge(relief, answer, fix)

        return Check(kind, f"fix of {relief.layer}: {kind}", judged)

    return [check(kind, judge) for kind, judge in judges.items()]


@dataclass(frozen=True)
class Fix:
    """What the row of a layer adds, the factor it promises, and the one that was asked for."""

    count: int
    promised: float | None
    to: float

    @property
    def targets(self) -> tuple[float, float]:
        promised = self.promised or self.to
        return min(promised, self.to), max(promised, self.to)


def _fix(relief: Relief, answer: Answer, to: float) -> Fix | str:
    row = next((row for row in answer.rows if row["layer"] == relief.layer), None)
    if row is None:
        return f"{relief.layer} has no row"
    if row["relief"] is None:
        return "no fix"
    count = added(row["relief"]["sentence"], relief.unit)
    if count is None:
        return f"`{row['relief']['sentence']}` adds no {relief.unit}"
    return Fix(count, row["k_after"], to)


def _enough(relief: Relief, answer: Answer, fix: Fix) -> str:
    del answer
    k, needed = relief.k_with(fix.count + relief.apart * relief.step), fix.targets[0]
    short = f"{fix.count} more{_plus(relief)} reach {k:.3g}x of {needed:.3g}x"
    return "" if k >= needed * (1 - 1e-5) else short


def _minimal(relief: Relief, answer: Answer, fix: Fix) -> str:
    """One step less must fail at what the row promises, or at the factor asked for."""
    del answer
    fewer, needed = fix.count - relief.step * (1 + relief.apart), fix.targets[1]
    if fewer < 0:
        return ""
    k = relief.k_with(fewer)
    return "" if k < needed else f"{fix.count} more, but {fewer} reach {k:.3g}x of {needed:.3g}x"


def _then(relief: Relief, answer: Answer, fix: Fix) -> str:
    assert relief.files_with is not None
    after = answer.again(files=relief.files_with(fix.count)).first
    reached = min(after.get("k") or fix.to, fix.to) if after else fix.to
    promised = fix.promised or fix.to
    said = f"promised {promised:.3g}x, with {fix.count} more it says {reached:.3g}x"
    return "" if near(reached, promised, relief.then_within) else said


def _plus(relief: Relief) -> str:
    return f" and {relief.apart * relief.step}" if relief.apart else ""


def added(sentence: str, unit: str) -> int | None:
    """Return how many of `unit` a sentence adds; `raise X to 9 (up from 4)` adds 5."""
    added = re.search(rf"(?:add|hire) [^;\d]*?([\d,]+) [^;\d]*?{unit}", sentence)
    if added:
        return int(added[1].replace(",", ""))
    raised = re.search(rf"to ([\d,.]+) ?[^;(]*{unit}[^;(]*\(up from ([\d,.]+)[^)]*\)", sentence)
    if raised:
        new, old = (float(raised[group].replace(",", "")) for group in (1, 2))
        return round(new - old)
    return None


def _said(answer: Answer) -> str:
    if answer.status not in (0, 1):
        return f"an error (status {answer.status}: {answer.errors.strip().splitlines()[:1]})"
    return f"{answer.first['label']} at {_times(answer.first['k'])}" if answer.first else "none"


def _times(k: float | None) -> str:
    return "no factor" if k is None else f"{k:.3g}x"
