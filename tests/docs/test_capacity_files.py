"""The page on plan, driver and trigger files lists every key."""

import re

import pytest
from msgspec import Struct

from docs.console_blocks import ROOT
from tenfold.decide.capacity.triggers import TriggerRule
from tenfold.files.capacity.plan_file import PLAN_MANY, PLAN_SINGLE
from tenfold.model.capacity.drivers import KIND_GROUPS, Driver, Levels

PAGE = (ROOT / "docs" / "reference" / "capacity-files.md").read_text()
TABLES: dict[str, type[Struct]] = {
    **{f"### `[{name}]`": table for name, table in PLAN_SINGLE.items()},
    **{f"### `[[{name}]]`": table for name, table in PLAN_MANY.items()},
    "## Driver file": Driver,
    "## Trigger file": TriggerRule,
}


def section(head: str) -> str:
    start = PAGE.index(f"{head}\n")
    ends = [PAGE.find(mark, start + len(head)) for mark in ("\n## ", "\n### ")]
    return PAGE[start : min((end for end in ends if end > 0), default=len(PAGE))]


@pytest.mark.parametrize("head", TABLES)
def test_every_key_is_in_the_section_of_its_table(head: str):
    words = re.findall(r"`([a-z_]+)`", section(head))
    assert [key for key in TABLES[head].__struct_encode_fields__ if key not in words] == []


def test_every_kind_and_level_of_a_driver_is_there():
    words = re.findall(r"`([a-z_]+)`", section("## Driver file"))
    for name in (*KIND_GROUPS, *Levels.__struct_encode_fields__):
        assert name in words
