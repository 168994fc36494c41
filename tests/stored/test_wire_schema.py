"""What stands on disks keeps its names: a Python name may change, a wire name may not.

The listing in `data/wire.txt` is kept as it was agreed on. What was added to stored types since
then is listed in `added.txt`, line by line. After a change that was meant to add something, look
at the difference and write that file anew. A name that went away, or that was required and is not
any more, needs a way to read the records that have it.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

from stored.reading import DATA, expected
from stored.wire_types import LINES, ROOTS, STRUCTS, listing
from tenfold.live.executor import Launch, Member
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.member.team_users import TeamUsers, UidRange
from tenfold.live.local.spawner.launches import launch_line
from tenfold.model.actions import Action
from tenfold.model.events import KIND_OF, Event
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis

TOLERANT = ("address",)
"""Written anew at each start, and read by clients that may be older: these take what they know."""

Place = tuple[str | int, ...]
ADDED = Path(__file__).with_name("added.txt")


def lines_of(text: str) -> list[str]:
    """Return the lines of a listing, each with its type; a union has a line for each member."""
    lines: list[str] = []
    for block in text.rstrip("\n").split("\n\n"):
        name, *fields = block.split("\n")
        if name.startswith("root "):
            for one in (name, *fields):
                root, _, kinds = one.partition(": ")
                lines += [f"{root}: {kind}" for kind in kinds.split(" | ")]
        else:
            lines += [name, *(f"{name.partition(' ')[0]}.{field.strip()}" for field in fields)]
    return lines


AGREED = lines_of((DATA / "wire.txt").read_text())


def left_out() -> list[str]:
    """Return the lines that were agreed on and that today's types do not have."""
    today = set(lines_of(listing()))
    return [one for one in AGREED if one not in today]


def test_the_wire_schema_that_was_agreed_on_still_holds():
    assert left_out() == []


def test_what_was_added_to_the_wire_schema_is_listed():
    added = [one for one in lines_of(listing()) if one not in AGREED]
    assert added == ADDED.read_text().splitlines()


def test_every_type_that_is_stored_is_in_the_listing():
    found: dict[type[Struct], None] = {}
    waiting: list[Any] = list(ROOTS.values())
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, type) and issubclass(hint, Struct):
            if hint not in found:
                found[hint] = None
                waiting += [field.type for field in msgspec.structs.fields(hint)]
        else:
            waiting += get_args(hint)
            waiting += [hint.__supertype__] if hasattr(hint, "__supertype__") else []
    assert set(found) == set(STRUCTS.values())


def test_tags_do_not_follow_the_names_of_classes():
    for name, kind in STRUCTS.items():
        config = kind.__struct_config__
        if config.tag_field is not None:
            assert (config.tag_field, config.tag) == ("type", name)
    assert [KIND_OF[one] for one in get_args(Event)] == [
        one.__struct_config__.tag for one in get_args(Event)
    ]
    assert all(one.__struct_config__.tag in STRUCTS for one in get_args(Action))


@pytest.mark.parametrize("name", [name for name in STRUCTS if name not in TOLERANT])
def test_a_stored_type_takes_no_field_that_it_does_not_know(name: str):
    assert STRUCTS[name].__struct_config__.forbid_unknown_fields


def places(value: Any, record: Any, place: Place = ()) -> Iterator[Place]:
    """Yield where the fields of structs stand in a record; those that came later are not there."""
    if isinstance(value, Struct):
        for field in msgspec.structs.fields(value):
            name = field.encode_name
            if name in record:
                yield (*place, name)
                yield from places(getattr(value, field.name), record[name], (*place, name))
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from places(one, record[str(key)], (*place, str(key)))
    elif isinstance(value, tuple | list):
        for number, one in enumerate(value):
            yield from places(one, record[number], (*place, number))


def with_renamed(record: Any, place: Place) -> Any:
    """Return a record in which one field has another name."""
    changed = copy.deepcopy(record)
    inside = changed
    for step in place[:-1]:
        inside = inside[step]
    inside["renamed"] = inside.pop(place[-1])
    return changed


@pytest.mark.parametrize("root", [name for name in ROOTS if name not in TOLERANT])
def test_a_renamed_field_never_comes_back_as_its_default(root: str):
    for record, _ in expected("specimens")[root][::2]:
        count = 0
        for place in places(msgspec.convert(record, ROOTS[root]), record):
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(with_renamed(record, place), ROOTS[root])
            count += 1
        assert count >= len([name for name in record if name != "type"])


def test_a_name_that_is_changed_in_python_alone_is_noticed():
    for name in ("job", "promise", "reason"):
        kind = STRUCTS[name]
        other = msgspec.defstruct(
            kind.__name__,
            [(f"{field.name}_now", field.type) for field in msgspec.structs.fields(kind)],
        )
        agreed = dict(STRUCTS)
        try:
            STRUCTS[name] = other
            assert left_out()
        finally:
            STRUCTS.update(agreed)


def test_what_a_snapshot_holds_is_written_again_in_the_same_bytes():
    """Digests that stand in journals are of these bytes: a field that is added must be left out."""
    [full, _], _ = expected("specimens")["snapshot"]
    text = msgspec.json.encode(full)
    assert msgspec.json.encode(msgspec.json.decode(text, type=ROOTS["snapshot"])) == text


def test_a_launch_is_ordered_in_the_words_that_an_older_spawner_knows():
    """A spawner outlives the control plane that started it, and serves the next one."""
    record = DATA / "running" / "files" / "run" / "attempts" / "runs-1" / "1" / "record"
    wanted = msgspec.json.decode(record.read_text().splitlines()[0])["launch"]
    launch = Launch(
        job_id=JobId(wanted["job"]),
        attempt=1,
        team=TeamId("vision"),
        run_spec=RunSpec(
            name="runs",
            command=tuple(wanted["command"]),
            env=(("GATE", "@GATES@/runs"),),
            grace_ms=Millis(5_000),
        ),
        members=tuple(
            Member(node=NodeId(node), gpus=(0, 1), cpus_milli=1_000)
            for node in ("h100-1", "h100-2")
        ),
    )
    made = launch_line(launch, wanted["inherited"], "", 64 << 20)
    assert list(made) == list(wanted)
    assert json.loads(json.dumps({**made, "ordered_ms": wanted["ordered_ms"]})) == wanted


def test_lines_of_attempt_folders_are_plain_dictionaries():
    for kind in LINES.values():
        assert kind.__total__, "what may be missing is said field by field"


def test_the_users_of_teams_are_read_as_they_were_written(tmp_path: Path):
    home = ExecutorDir(str(tmp_path))
    home.prepare()
    (tmp_path / "teams" / "blue").mkdir()
    text = '{\n "teams": {\n  "red": 2100000003\n },\n "put_right": true\n}'
    (tmp_path / "team-users.json").write_text(text)
    users = TeamUsers(home, UidRange())
    assert users.user_for("red")["uid"] == 2_100_000_003
    # Said to be done: no file changes hands, nor gets `blue` a user.
    assert users.migrate_ownership() == 0
    assert (tmp_path / "team-users.json").read_text() == text
