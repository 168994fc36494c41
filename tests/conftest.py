"""How properties are drawn, and a control plane of its own for a test.

Properties are drawn freely at the desk, and the same way each time where a change must land.
"""

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from threading import current_thread, main_thread

import pytest
from hypothesis import settings

from unit.up_process import Up

# Tests start hundreds of Pythons: each would compile the sources again, and each worker the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Started in the background, as by `./dev test &` in a script, this process ignores Ctrl-C, and so
# would every process whose end by Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and current_thread() is main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A failure prints the line that draws the same example again.
settings.register_profile("desk", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


LONG = (
    "tests/contract/executor/ray/",
    "tests/contract/executor/slurm/",
    "train-and-serve.md",
    "test_every_story_is_that_of_sacct_through_restarts_of_both",
    "test_an_end_while_the_service_was_down_is_told",
    "test_a_run_that_is_killed_and_one_that_is_asked_to_stop_lose_nothing",
    "test_the_same_requests_lead_to_the_same_decisions_and_cost",
    "test_jobs_start_in_about_the_order_of_a_real_slurm",
    "see-what-breaks-first.md",
    "research-256/README.md",
)
"""Tests that take or wait longest: they start first, so that no worker waits for one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move long tests to the front; the others keep their order."""
    items.sort(key=lambda item: not any(part in item.nodeid for part in LONG))


def pytest_collection_finish() -> None:
    """Keep all tests and modules out of the collections of garbage: they stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Up, None, None]:
    """A control plane in an empty state directory; commands of the test find it there."""
    for name in ("TENFOLD_URL", "TENFOLD_TOKEN", "TENFOLD_JOURNAL", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENFOLD_HOME", str(tmp_path / "home"))
    made = Up(tmp_path / "home")
    yield made
    if made.process is not None:
        made.kill()
