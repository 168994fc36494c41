"""A snapshot has what the members of an array have in common once."""

import zlib

import msgspec
import pytest
from msgspec.structs import replace

from journal_builders import JOINED, array_of
from tenfold.engine.digest import fleet_digest
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import fleet_from, image_of
from tenfold.journal.shared.image import MARK, decode_image, encode_image
from tenfold.journal.snapshots import snapshot_row
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, Event, JobEnded, JobHeld, JobStarted, JobSubmitted
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Slot
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

TAGS = tuple(f"{number:02}" + "x" * 600 for number in range(100))
"""More than compression can find again."""


def members(count: int, number: int = 1) -> list[JobSubmitted]:
    where = PlacementConstraints(needs=TAGS)
    return [
        replace(one, job=replace(one.job, shape=replace(one.job.shape, where=where)))
        for one in array_of(count, number)
        if isinstance(one, JobSubmitted)
    ]


def fleet_with(*events: Event) -> Fleet:
    fleet = Fleet()
    fleet.apply_all([*JOINED, *events])
    return fleet


def test_members_that_wait_run_ended_and_are_held_share_one_text():
    jobs = members(8)
    slots = (Slot(NodeId("n0"), 8), Slot(NodeId("n1"), 8))
    first, second, third = (one.job.id for one in jobs[:3])
    fleet = fleet_with(
        *jobs,
        ActionOrdered(Millis(1), StartJob(first, slots)),
        JobStarted(Millis(1), first),
        JobEnded(Millis(2), first, exit_code=0),
        ActionOrdered(Millis(2), StartJob(second, slots)),
        JobStarted(Millis(2), second),
        JobHeld(Millis(2), third, Reason("quarantined")),
    )
    stored = encode_image(image_of(fleet))
    assert stored.startswith(MARK)
    assert stored.count(b"99" + b"x" * 600) == 1
    assert decode_image(stored) == image_of(fleet)
    assert fleet_digest(fleet_from(decode_image(stored))) == fleet_digest(fleet)
    pending = decode_image(stored).pending
    assert len({id(one.shape) for one in pending}) == 1


def test_a_snapshot_of_many_members_is_small():
    one, many = (len(snapshot_row(fleet_with(*members(count)))["body"]) for count in (2, 500))
    assert many - one < 500 * 40


def test_an_image_without_arrays_is_plain_json_as_before():
    image = image_of(fleet_with())
    assert encode_image(image) == msgspec.json.encode(image)
    small = image_of(fleet_with(*array_of(3)))
    assert decode_image(encode_image(small)) == small
    assert encode_image(small).startswith(b"{")


@pytest.mark.parametrize("change", [(b"\n0\n", b"\n7\n"), (b"\n0\n", b"\nx\n"), (MARK, b"sharee")])
def test_a_damaged_image_is_an_error_and_not_another_fleet(change: tuple[bytes, bytes]):
    stored = encode_image(image_of(fleet_with(*members(3))))
    with pytest.raises((ValueError, IndexError, msgspec.DecodeError)):
        decode_image(zlib.decompress(zlib.compress(stored)).replace(*change))
