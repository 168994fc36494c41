"""Which requests wait in the queue of those that take seconds."""

from typing import Any, cast

import pytest
from litestar.types import Scope

from tenfold.server.runtime.admission import EXPENSIVE, EXPENSIVE_WITH_ETA, _is_expensive


@pytest.mark.parametrize("query", [b"eta=1", b"%65ta=1", b"attempts=5&et%61=true", b"eta=0"])
def test_a_forecast_is_expensive_however_its_name_is_written(query: bytes):
    assert _is_expensive(scope(query), EXPENSIVE_WITH_ETA)


@pytest.mark.parametrize(
    "query", [b"", b"attempts=5", b"beta=1", b"\xff=\xfe", b"%ff=%00", b"%F0%9F=%"]
)
def test_a_job_without_a_forecast_is_not(query: bytes):
    assert not _is_expensive(scope(query), EXPENSIVE_WITH_ETA)
    assert _is_expensive(scope(query), EXPENSIVE)
    assert not _is_expensive(scope(query), {})


def scope(query: bytes) -> Scope:
    made: dict[str, Any] = {"query_string": query}
    return cast("Scope", made)
