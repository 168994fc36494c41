"""Times as S3 writes them: ISO 8601 in XML, RFC 1123 in headers, basic format in signatures."""

import calendar
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

_BASIC = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=4_096)
def basic_to_ms(text: str) -> int | None:
    """Parse `20260131T120000Z`; None if it is none."""
    match = _BASIC.fullmatch(text)
    if match is None:
        return None
    numbers = [int(group) for group in match.groups()]
    try:
        datetime(*numbers, tzinfo=UTC)  # pyright: ignore[reportArgumentType]
    except ValueError:
        return None
    return calendar.timegm((*numbers, 0, 0, 0)) * 1000


def iso(ms: int) -> str:
    """Return `2026-01-31T12:00:00.000Z`."""
    at = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03}Z"


@lru_cache(maxsize=4_096)
def http_date(seconds: int) -> str:
    """Return `Sat, 31 Jan 2026 12:00:00 GMT`."""
    at = datetime.fromtimestamp(seconds, UTC)
    day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
    return f"{day}, {at.day:02} {month} {at.year} {at:%H:%M:%S} GMT"


def parse_http_date(text: str) -> int | None:
    """Return the milliseconds of a date in a header; None if it is none."""
    try:
        return int(parsedate_to_datetime(text).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def parse_iso(text: str) -> int | None:
    """Return the milliseconds of an ISO 8601 time; None if it is none."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
