"""The page on service files names every key with its default, and the examples have no fault."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import NODEFAULT, Struct, structs

from tenfold.files.services.service import read_service
from tenfold.model.service.spec import Canary, ServiceSpec

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "service-file.md").read_text()
EXAMPLES = sorted((ROOT / "examples").glob("serve-*/service*.toml"))
WHOLE = ("origin", "overflow")
"""Tables whose keys are listed in their own row, or that the command line fills in."""


def keys_of(kind: type[Struct], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for field in structs.fields(kind):
        inner = {"canary": Canary}.get(field.name) or type(field.default)
        is_table = isinstance(inner, type) and issubclass(inner, Struct)
        if is_table and field.name not in WHOLE:
            yield from keys_of(inner, f"{field.name}.")
        else:
            default = field.default
            if default is NODEFAULT and field.default_factory is not NODEFAULT:
                default = field.default_factory()
            yield prefix + field.encode_name, default


def rows() -> dict[str, str]:
    found = re.findall(r"^\| `([a-z_.]+)` \|.*\| ([^|]*) \|$", PAGE, re.MULTILINE)
    assert len(found) == len(dict(found)), "each key is listed once"
    return dict(found)


def test_every_key_is_documented_once_and_no_other():
    assert sorted(rows()) == sorted(key for key, _ in keys_of(ServiceSpec))


def test_the_defaults_that_are_numbers_or_words_are_those_of_the_code():
    documented, seen = rows(), 0
    for key, default in keys_of(ServiceSpec):
        if isinstance(default, bool | int | float | str) and default != "":
            text = documented[key].strip("`").replace(",", "")
            assert text == msgspec.json.encode(default).decode().strip('"').removesuffix(".0"), key
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_an_example_can_be_deployed(file: Path):
    assert read_service(file)["command"]
