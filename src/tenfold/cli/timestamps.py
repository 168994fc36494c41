"""Moments as people type them: `12h` for twelve hours ago, or a date, or a time in ISO 8601."""

from datetime import UTC, datetime

from tenfold.cli.quantities import parse_duration
from tenfold.clock.wall import now_ms


def parse_timestamp(text: str, option: str) -> str:
    """Return a moment in ISO 8601; one that names no zone is in UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        at = datetime.fromtimestamp(now_ms() / 1_000 - parse_duration(text, option), UTC)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat(timespec="milliseconds")
