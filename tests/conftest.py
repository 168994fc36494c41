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
