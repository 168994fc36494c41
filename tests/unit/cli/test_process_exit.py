"""A process that holds objects exits at once, with its output and status."""

import subprocess
import sys

import pytest

KEPT = """
import atexit, sys
from tenfold.cli.process_exit import exit_process, hold_until_exit
atexit.register(print, "shut down")
{keep}
print("said")
sys.stderr.write("and why")
exit_process({status})
"""


def ended(status: int, *, keeps: bool) -> subprocess.CompletedProcess[str]:
    code = KEPT.format(keep="hold_until_exit([1], [2])" if keeps else "", status=status)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("status", [0, 3])
def test_output_is_flushed_before_the_exit(status: int):
    done = ended(status, keeps=True)
    assert (done.stdout, done.stderr, done.returncode) == ("said\n", "and why", status)


def test_without_held_objects_the_interpreter_shuts_down_normally():
    done = ended(2, keeps=False)
    assert (done.stdout, done.returncode) == ("said\nshut down\n", 2)


def test_a_closed_pipe_is_reported_as_usual():
    code = KEPT.format(keep="hold_until_exit([1])", status=0)
    words = f"\"{sys.executable}\" -u -c '{code}' | true"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 0
