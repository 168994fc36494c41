"""Lifecycle rules: what is due, by age, date, tags and size, among current and old versions."""

import pytest

from tenfold.objects.catalog.listing import Entry
from tenfold.objects.catalog.records import LifecycleRule, ObjectRecord, Transition
from tenfold.objects.serve.expiry import Due, DueMove, due_at, due_moves, due_versions

DAY = 86_400_000
NOW = 100 * DAY


def entry(version: str, days_old: float, *, current: bool = True, **fields: object) -> Entry:
    record = ObjectRecord(
        key=str(fields.pop("key", "logs/a")),
        version=version,
        modified_ms=NOW - int(days_old * DAY),
        **fields,  # pyright: ignore[reportArgumentType]
    )
    return Entry(record, current, 0)


def due(rule: LifecycleRule, *entries: Entry) -> list[tuple[str, bool]]:
    found = due_versions([rule], entries, NOW, DAY)
    return [(one.record.version, one.for_good) for one in found]


def test_age_is_counted_in_whole_days_to_midnight():
    assert due_at(DAY // 2, 1, DAY) == 2 * DAY
    assert due_at(DAY, 1, DAY) == 2 * DAY


@pytest.mark.parametrize(("days_old", "is_due"), [(9, False), (10, True), (11, True)])
def test_a_current_version_expires_by_age(days_old: int, is_due: bool):
    rule = LifecycleRule(id="r", prefix="logs/", expire_days=10)
    assert due(rule, entry("v1", days_old)) == ([("v1", False)] if is_due else [])


@pytest.mark.parametrize(
    "rule",
    [
        LifecycleRule(id="r", prefix="data/", expire_days=1),
        LifecycleRule(id="r", tags={"keep": "no"}, expire_days=1),
        LifecycleRule(id="r", size_bytes_over=10, expire_days=1),
        LifecycleRule(id="r", size_bytes_under=10, expire_days=1),
        LifecycleRule(id="r", expire_at_ms=NOW + DAY),
        LifecycleRule(id="r", noncurrent_days=1),
    ],
)
def test_a_version_that_a_rule_does_not_select_stays(rule: LifecycleRule):
    assert due(rule, entry("v1", 50, size_bytes=10)) == []


def test_old_versions_expire_from_when_they_stopped_being_current_and_some_are_kept():
    rule = LifecycleRule(id="r", noncurrent_days=5, noncurrent_kept=1)
    versions = [
        entry("v4", 3),
        entry("v3", 6, current=False),
        entry("v2", 20, current=False),
        entry("v1", 30, current=False),
    ]
    # v3 was replaced three days ago; of the others, which are old enough, the newest one counts.
    assert due(rule, *versions) == [("v2", True), ("v1", True)]


def test_a_marker_with_nothing_behind_it_is_removed():
    rule = LifecycleRule(id="r", expire_lone_markers=True)
    marker = entry("m", 1, is_marker=True)
    assert due(rule, marker) == [("m", True)]
    assert due(rule, marker, entry("v1", 2, current=False)) == []


def test_a_version_moves_to_the_last_class_that_is_due():
    rule = LifecycleRule(
        id="r",
        transitions=(
            Transition(storage_class="STANDARD_IA", days=30),
            Transition(storage_class="GLACIER_IR", days=60),
        ),
    )

    def moves(days_old: float, storage_class: str = "STANDARD") -> list[DueMove]:
        one = entry("v1", days_old, storage_class=storage_class)
        return list(due_moves([rule], [one], NOW, DAY))

    assert moves(29) == []
    assert [one.storage_class for one in moves(31)] == ["STANDARD_IA"]
    assert [one.storage_class for one in moves(61)] == ["GLACIER_IR"]
    assert moves(61, "GLACIER_IR") == []


def test_each_key_is_judged_alone():
    rule = LifecycleRule(id="r", expire_days=10)
    entries = [entry("a", 20, key="a"), entry("b", 5, key="b")]
    found = list(due_versions([rule], entries, NOW, DAY))
    assert found == [Due(entries[0].record, for_good=False)]
