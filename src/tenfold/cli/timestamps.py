"""Parse times such as `12h` (twelve hours ago), a date or an ISO 8601 timestamp."""

from datetime import UTC, datetime

from tenfold.cli.quantities import parse_duration
from tenfold.clock.wall import now_ms
from tenfold.model.errors import InputError


def parse_timestamp(text: str, option: str) -> str:
    """Return a time in ISO 8601; without a time zone it is read as UTC."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            ago_s = parse_duration(text, option)
        except InputError:
            raise InputError(
                "bad-duration",
                f"`{option}`: `{text}` is neither a duration nor a time",
                "write a duration such as `90m` or `3d`, or a time such as `2026-11-16T08:00:00Z`",
                field=option,
            ) from None
        at = datetime.fromtimestamp(now_ms() / 1_000 - ago_s, UTC)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat(timespec="milliseconds")
