"""Every key of every kind of file says what it expects in words."""

from datetime import date, datetime, time
from typing import Annotated, Literal

import pytest
from msgspec import Meta, inspect

from tenfold.files.core.expectations import expectation
from tenfold.files.fleet.rows import SINGLE_TABLES, TABLES
from tenfold.files.growth import PaceTable
from tenfold.model.job.spec import JobFile, JobSpec

CASES: list[tuple[object, str]] = [
    (date, "a date such as 2026-11-15"),
    (datetime, "a timestamp such as 2026-11-15T12:00:00Z"),
    (time, "a time of day such as 22:00"),
    (Literal["", "leaf", "pod"], "one of leaf, pod"),
    (tuple[int, str], "a list of 2 items: a whole number; a string"),
    (dict[str, str], "a table of names to strings"),
    (dict[str, Literal["a", "b"]], "a table, each value one of a, b"),
    (str | float | None, "a duration such as 90m, or a number of seconds"),
    (Annotated[float, Meta(gt=0, lt=1)], "a number above 0 and below 1"),
]


@pytest.mark.parametrize(("kind", "text"), CASES)
def test_an_expectation_names_the_type_with_an_example(kind: object, text: str):
    assert expectation(inspect.type_info(kind), "key") == text


def test_no_key_of_a_file_expects_just_a_valid_value():
    rows = (PaceTable, JobFile, JobSpec, *TABLES.values(), *SINGLE_TABLES.values())
    for row in rows:
        info = inspect.type_info(row)
        assert isinstance(info, inspect.StructType)
        for field in info.fields:
            text = expectation(field.type, field.encode_name)
            assert "a valid value" not in text, (row, field.name)
            assert "one of ," not in text, (row, field.name)
