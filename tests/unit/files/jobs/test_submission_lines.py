"""A command that is written as a line for a shell is told how to be a list."""

import pytest

from tenfold.files.jobs.submission import submission_of
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import TeamId


def found(command: object) -> list[Finding]:
    findings: list[Finding] = []
    submission_of({"command": command, "nodes": 0}, TeamId("red"), "", findings)
    return findings


def test_a_line_is_given_back_as_arguments():
    line, other = sorted(found("echo hi | wc"), key=lambda one: one.path)
    assert "not run by a shell" in line.message
    assert line.hint == 'use `["sh", "-c", "echo hi | wc"]`'
    assert other.path == ("nodes",)
    assert "no shell" not in other.message


@pytest.mark.parametrize("command", [[], 3, None, [1]])
def test_other_faults_of_a_command_are_told_as_before(command: object):
    assert not any("shell" in one.message for one in found(command))
