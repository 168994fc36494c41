"""Parse amounts, times of day and timestamps of a policy file, with an error for each."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from math import isfinite
from typing import cast

from tenfold.files.core.expectations import describe_value
from tenfold.files.core.rows import wrong_value
from tenfold.files.policy.rows import MOST_GPUS, MOST_USD_PER_HOUR, RENAMED
from tenfold.model.fleet.finding import Finding, Path
from tenfold.model.job.job import WHOLE
from tenfold.model.job.terms import Hours
from tenfold.model.policy.governance import ANY, USD, Amounts
from tenfold.model.units import DAY, HOUR, MINUTE, Millis, usd_micros

USD_PER_HOUR = "usd_per_hour"
"""The key for dollars in files; the core uses `USD`."""
NOT_TYPES = ("gpu", "gpus", "accelerator", "accelerators")
"""Words that stand for GPUs of every type elsewhere, and would match no node as a type."""
EPOCH = datetime.fromisoformat("1970-01-01T00:00+00:00")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})\Z")


def fault(code: str, message: str, hint: str, path: Path) -> Finding:
    """Return an error: the file cannot be used until it is fixed."""
    return Finding(code=code, message=message, hint=hint, path=path)


def warning(code: str, message: str, hint: str, path: Path) -> Finding:
    """Return a warning: the file can be used as it is."""
    return Finding(code=code, message=message, hint=hint, path=path, severity="warning")


def with_new_keys(value: object, path: Path, findings: list[Finding]) -> object:
    """Return a table with old keys renamed, and add a warning for each of them."""
    if not isinstance(value, dict):
        return value
    table = cast("dict[str, object]", value)
    renamed = {old: new for old, new in RENAMED.items() if old in table and new not in table}
    for old, new in renamed.items():
        findings.append(
            warning(
                "renamed-key",
                f"`{old}` is now `{new}`",
                f"rename it: `{old}` will not be read in the next version",
                (*path, old),
            )
        )
    return {renamed.get(key, key): item for key, item in table.items()}


def amounts_of(value: object, path: Path, findings: list[Finding]) -> Amounts:
    """Return milli-GPUs by type, and micro-USD an hour."""
    amounts: Amounts = {}
    for name, number in numbers_of(value, path, findings).items():
        if name == USD_PER_HOUR:
            amounts[USD] = usd_micros(number)
        elif name == USD:
            findings.append(
                fault(
                    "unknown-key",
                    f"unknown key `{USD}`",
                    f"did you mean `{USD_PER_HOUR}`?",
                    (*path, name),
                )
            )
        elif name.lower() in NOT_TYPES:
            findings.append(
                fault(
                    "unknown-key",
                    f"`{name}` is not an accelerator type",
                    f"write `{ANY} = {number:g}` for all types together, or a type such as H100",
                    (*path, name),
                )
            )
        else:
            amounts[name] = round(number * WHOLE)
    return amounts


def numbers_of(value: object, path: Path, findings: list[Finding]) -> dict[str, float]:
    """Return the valid entries of a table of names to non-negative numbers."""
    if not isinstance(value, dict):
        findings.append(wrong_value(path, "a table such as { H100 = 8, any = 16 }", value))
        return {}
    good: dict[str, float] = {}
    for name, number in cast(Mapping[str, object], value).items():
        most = MOST_USD_PER_HOUR if "usd" in _words((*path, name)) else MOST_GPUS
        if isinstance(number, bool) or not isinstance(number, int | float):
            findings.append(wrong_value((*path, name), "a number", number))
        elif not isfinite(number) or not 0 <= number <= most:
            findings.append(wrong_value((*path, name), f"a number from 0 to {most:,.0f}", number))
        else:
            good[name] = float(number)
    return good


def _words(path: Path) -> list[str]:
    return [word for part in path if isinstance(part, str) for word in part.split("_")]


def hours_of(start: object, end: object, path: Path, findings: list[Finding]) -> Hours | None:
    """Return part of a day; an end not after its start is on the next day."""
    first, last = _clock_ms(start), _clock_ms(end)
    for value, found in ((start, first), (end, last)):
        if found is None:
            findings.append(
                fault(
                    "bad-hours",
                    f"{describe_value(value)} is not a time of day",
                    'write it as "08:30", in quotes, from "00:00" to "24:00"',
                    path,
                )
            )
    if first is None or last is None:
        return None
    if first == last:
        findings.append(
            fault(
                "bad-hours",
                f"the hours from `{start}` to `{end}` are empty",
                'write "00:00" to "24:00" for the whole day',
                path,
            )
        )
        return None
    return Hours(Millis(first), Millis(last if last > first else last + DAY))


def span_of(text: str, path: Path, findings: list[Finding]) -> Hours | None:
    """Return part of a day written as one string: `22:00-06:00`."""
    start, dash, end = text.partition("-")
    if dash:
        return hours_of(start.strip(), end.strip(), path, findings)
    findings.append(
        fault(
            "bad-hours",
            f"{describe_value(text)} is not a range of hours",
            'write it as "22:00-06:00"',
            path,
        )
    )
    return None


def _clock_ms(value: object) -> int | None:
    match = _CLOCK.match(value) if isinstance(value, str) else None
    if match is None:
        return None
    ms = int(match[1]) * HOUR + int(match[2]) * MINUTE
    return ms if int(match[2]) < 60 and ms <= DAY else None


def moment_of(
    value: object, offset_ms: Millis, path: Path, findings: list[Finding]
) -> Millis | None:
    """Return a timestamp as ms since 1970; without a zone, the file's offset applies."""
    moment = value if isinstance(value, datetime) else None
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            moment = None
    if moment is None:
        findings.append(
            fault(
                "bad-moment",
                f"{describe_value(value)} is not a timestamp",
                "write it as 2026-11-20T08:00:00Z",
                path,
            )
        )
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone(timedelta(milliseconds=offset_ms)))
    return Millis((moment - EPOCH) // timedelta(milliseconds=1))


def millis(number: float, unit: int) -> Millis:
    """Return minutes or hours as whole milliseconds."""
    return Millis(round(number * unit))
