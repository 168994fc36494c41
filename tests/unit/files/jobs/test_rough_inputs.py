"""Values that a careless or a hostile hand writes: each is named, and none stops the loop."""

import os

import pytest

from tenfold.clock.steady import SteadyClock
from tenfold.files.jobs.submission import submission_of
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import TeamId
from tenfold.model.units import DAY, Millis


def faults_of(**values: object) -> list[Finding]:
    findings: list[Finding] = []
    submission_of({"command": ["true"], **values}, TeamId("red"), "bob", findings)
    return findings


@pytest.mark.parametrize("key", ["time_limit", "grace", "silent_limit"])
@pytest.mark.parametrize("span", ["99999999999999w", "9" * 39 + "w", "1653439d"])
def test_a_span_of_more_than_a_lifetime_is_refused_by_name(key: str, span: str):
    [found] = faults_of(**{key: span})
    assert found.path == (key,)
    assert f"`{key}` must be at most 1,000,000,000 seconds" in found.message


@pytest.mark.parametrize("span", ["0s", "0m", "00:00:00"])
def test_a_span_of_zero_must_be_longer(span: str):
    [found] = faults_of(checkpoint={"dir": "saves", "interval": span})
    assert found.message == f"`checkpoint.interval` must be longer than 0 s, got `{span}`"


def test_a_span_of_another_type_says_that_a_duration_is_expected():
    [found] = faults_of(grace=["5m"])
    assert found.message.startswith("`grace` expects a duration such as 90m, or a number of sec")


def test_an_elastic_range_the_wrong_way_round_is_named_once():
    [found] = faults_of(nodes=1, gpus_per_node=1, elastic={"min": 4, "max": 2})
    assert found.message == "`elastic`: `min` (4) is greater than `max` (2)"


@pytest.mark.parametrize("span", ["30d", "52w", "365-00:00:00", 1e9])
def test_a_span_of_months_is_fine(span: str | float):
    assert faults_of(time_limit=span) == []


def test_an_argument_that_is_no_text_is_named_by_its_place():
    [found] = faults_of(command=["echo", 1, "two"])
    assert found.path == ("command", 1)
    assert found.message.startswith("`command` 2 expects a string")


def test_a_variable_is_named_by_its_own_name():
    named, valued = faults_of(env={"NOT A NAME": "x", "COUNT": 5, "GOOD": "y"})
    assert "got the string `NOT A NAME`" in named.message
    assert valued.path == ("env", "COUNT")


def test_a_value_too_long_is_told_how_long_it_may_be():
    [found] = faults_of(env={"BIG": "x" * 200_000})
    assert found.path == ("env", "BIG")
    assert "at most 131,072 characters" in found.message


def test_a_thousand_faults_of_one_list_are_told_as_a_few():
    assert len(faults_of(command=[1] * 1_000)) == 5


def test_a_clock_waits_for_a_moment_that_the_kernel_cannot_count_to():
    reader, writer = os.pipe()
    try:
        os.write(writer, b"x")
        SteadyClock(Millis(0)).wait([reader], 400 * DAY)
    finally:
        os.close(reader)
        os.close(writer)


def test_a_duration_in_quotes_without_a_unit_is_refused_with_what_to_write():
    [found] = faults_of(time_limit="10")
    assert found.message == '`time_limit` has no unit: "10" could be minutes or seconds'
    assert found.hint == 'write "10m" or "10s"; a number without quotes is seconds'


@pytest.mark.parametrize("span", ["1:99", "1:30:61", "1-24:00:00"])
def test_a_time_whose_minutes_or_seconds_are_out_of_range_is_refused(span: str):
    [found] = faults_of(time_limit=span)
    assert found.message.startswith("`time_limit` expects a duration")


@pytest.mark.parametrize("span", ["90:00", "1:30:00", "36:00:00", "1-12", "1-12:00:00"])
def test_times_of_slurm_are_durations(span: str):
    assert faults_of(time_limit=span) == []


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [
        ("memory_gib_per_node", 0.0001, "1 MiB"),
        ("cpus_per_node", 0.0001, "1/1000 of a CPU"),
        ("gpus_per_node", 0.0001, "1/1000 of a GPU"),
        ("gpus", 0.0001, "1/1000 of a GPU"),
    ],
)
def test_a_request_that_would_be_rounded_to_none_is_refused(key: str, value: float, least: str):
    [found] = faults_of(**{key: value})
    assert found.message == f"`{key}` is 0.0001, less than {least}"


def test_the_smallest_requests_are_fine():
    assert faults_of(memory_gib_per_node=1 / 1_024, cpus_per_node=0.001, gpus=0.001) == []


def test_a_tag_that_is_needed_and_avoided_is_named():
    [found] = faults_of(needs=["EU", "ssd"], avoids=["ssd"])
    assert found.message == "`needs` and `avoids` both name `ssd`: no node is suitable"


@pytest.mark.parametrize("how", ["required", "preferred"])
def test_how_without_a_level_would_change_nothing_and_is_refused(how: str):
    [found] = faults_of(gpus=8, how=how)
    assert found.message == "`how` says how strictly `within` holds, but `within` is not set"
    assert faults_of(gpus=8, how=how, within="rack") == []


@pytest.mark.parametrize("key", ["after", "after_any", "needs", "avoids"])
def test_one_name_in_place_of_a_list_is_shown_as_a_list(key: str):
    [found] = faults_of(**{key: "sweep-3"})
    assert found.hint == 'use `["sweep-3"]`'


def test_a_name_that_is_too_long_says_how_long_it_may_be():
    [found] = faults_of(name="x" * 300)
    assert "at most 80 characters" in found.message
