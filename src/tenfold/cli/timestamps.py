"""Parse times such as `12h` (twelve hours ago), `today`, a date or an ISO 8601 timestamp."""

from datetime import UTC, datetime, timedelta

from tenfold.cli.quantities import parse_duration
from tenfold.clock.wall import now_ms
from tenfold.model.errors import InputError

_DAYS_AGO = {"today": 0, "yesterday": 1}
"""The start of a day in UTC, as all times are printed."""


def parse_timestamp(text: str, option: str) -> str:
    """Return a time in ISO 8601; without a time zone it is read as UTC."""
    now = datetime.fromtimestamp(now_ms() / 1_000, UTC)
    days = _DAYS_AGO.get(text.strip().lower())
    if days is not None:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return (midnight - timedelta(days=days)).isoformat(timespec="milliseconds")
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            ago_s = parse_duration(text, option)
        except InputError:
            raise InputError(
                "bad-duration",
                f"`{option}`: `{text}` is neither a duration nor a time",
                "write a duration such as `90m` or `3d`, `today`, `yesterday`, or a time such as "
                "`2026-11-16T08:00:00Z`",
                field=option,
            ) from None
        at = datetime.fromtimestamp(now.timestamp() - ago_s, UTC)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).isoformat(timespec="milliseconds")
