"""Times that users write: durations, days, dates and timestamps."""

from datetime import UTC, datetime, timedelta

import pytest

from tenfold.cli.timestamps import parse_timestamp
from tenfold.clock.wall import now_ms
from tenfold.model.errors import InputError


def parsed(text: str) -> datetime:
    return datetime.fromisoformat(parse_timestamp(text, "--since"))


def test_today_and_yesterday_begin_at_midnight_in_utc():
    before = datetime.fromtimestamp(now_ms() / 1_000, UTC)
    today, yesterday = parsed("today"), parsed("Yesterday")
    after = datetime.fromtimestamp(now_ms() / 1_000, UTC)
    assert today.date() in (before.date(), after.date())
    assert (today.hour, today.minute, today.second, today.microsecond) == (0, 0, 0, 0)
    assert today - yesterday in (timedelta(days=1), timedelta(0))


def test_a_duration_is_that_long_ago():
    before = datetime.fromtimestamp(now_ms() // 1_000, UTC)
    assert parsed("24h") >= before - timedelta(days=1)


def test_other_words_are_refused_with_those_that_work():
    with pytest.raises(InputError, match="neither a duration nor a time") as found:
        parsed("tomorrow")
    assert "`today`" in found.value.hint
