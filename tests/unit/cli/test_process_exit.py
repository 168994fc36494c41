"""A process that kept what it made ends at once, with all it has said and its status."""

import subprocess
import sys

import pytest

KEPT = """
import atexit, sys
from tenfold.cli.process_exit import exit_process, hold_until_exit
atexit.register(print, "taken apart")
{keep}
print("said")
sys.stderr.write("and why")
exit_process({status})
"""


def ended(status: int, *, keeps: bool) -> subprocess.CompletedProcess[str]:
    code = KEPT.format(keep="hold_until_exit([1], [2])" if keeps else "", status=status)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("status", [0, 3])
def test_what_was_said_is_out_before_the_end(status: int):
    done = ended(status, keeps=True)
    assert (done.stdout, done.stderr, done.returncode) == ("said\n", "and why", status)


def test_without_anything_kept_the_interpreter_ends_as_ever():
    done = ended(2, keeps=False)
    assert (done.stdout, done.returncode) == ("said\ntaken apart\n", 2)


def test_a_reader_that_went_away_is_told_as_ever():
    code = KEPT.format(keep="hold_until_exit([1])", status=0)
    words = f"\"{sys.executable}\" -u -c '{code}' | true"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 0
