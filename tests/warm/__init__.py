"""`tenfold` for tests that run hundreds of commands: forked from a process that has imported it.

A command is still a process of its own, with its own arguments, folder, environment and standard
streams. Only the second that Python needs to import everything is spent once instead of each time.
"""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SERVER = Path(__file__).with_name("server.py")
CLIENT = Path(__file__).with_name("client.py")


@cache
def folder_with_tenfold(python: str = sys.executable) -> Path:
    """Return a folder to put first on PATH, whose `tenfold` is forked from a warm `python`."""
    folder = Path(tempfile.mkdtemp(prefix="warm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = [python, "-P", str(SERVER), str(folder / "socket")]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_clean())
    assert process.stdout is not None, "a pipe was asked for"
    # The server ends when this pipe closes, however this process ends.
    atexit.register(process.communicate)
    assert process.stdout.readline() == b"ready\n", "the server did not start"
    script = folder / "tenfold"
    script.write_text(f"#!{sys.executable} -ISB\n{CLIENT.read_text()}")
    script.chmod(0o755)
    return folder


def _clean() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TENFOLD_")}
    return {**kept, "OPENBLAS_NUM_THREADS": "1"}
