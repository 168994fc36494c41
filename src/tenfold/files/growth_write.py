"""Write a grow file: every table whose values differ from the defaults."""

from collections.abc import Iterable, Sequence
from typing import cast

from msgspec import Struct
from msgspec.structs import fields

from tenfold.files.fleet.write import pairs_of
from tenfold.model.growth.growth import GrowSpec, LeadTime, Pace


def render_grow_toml(spec: GrowSpec, comments: Sequence[str] = ()) -> str:
    """Return the text of a grow file, comments first."""
    lines = [f"# {comment}" for comment in comments]
    for field in fields(spec):
        value: object = getattr(spec, field.name)
        if isinstance(value, tuple):
            for table in cast(tuple[Struct, ...], value):
                lines += ["", f"[[{field.name.removesuffix('s')}]]", *_pairs(table)]
        elif isinstance(value, Struct):
            pairs = list(_pairs(value))
            lines += ["", f"[{field.name}]", *pairs] if pairs else []
    return "\n".join(lines).lstrip("\n") + "\n"


def _pairs(table: Struct) -> Iterable[str]:
    if isinstance(table, Pace):
        # A day is a date in TOML, not a string.
        return (f"today = {table.today}", f"doubles_in_months = {table.doubles_in_months:g}")
    if isinstance(table, LeadTime) and table.stages:
        # The total follows from the stages, and a file may state only one of the two.
        stages = ", ".join(f"{name} = [{a:g}, {b:g}]" for name, (a, b) in table.stages.items())
        return (f'thing = "{table.thing}"', f"stages = {{ {stages} }}")
    return pairs_of(table)
