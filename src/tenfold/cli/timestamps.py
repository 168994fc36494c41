"""Parse times such as `12h` (twelve hours ago), a date or an ISO 8601 timestamp."""

from datetime import UTC, datetime

from tenfold.cli.quantities import parse_duration
from tenfold.clock.wall import now_ms


def parse_timestamp(text: str, option: str) -> str:
    """Return a time in ISO 8601; without a time zone it is read as UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        at = datetime.fromtimestamp(now_ms() / 1_000 - parse_duration(text, option), UTC)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat(timespec="milliseconds")
