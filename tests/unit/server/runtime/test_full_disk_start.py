"""A start on a disk that takes nothing more is refused in one sentence, and leaves nothing."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from pathlib import Path
from sqlalchemy.exc import OperationalError
from tenfold.model.errors import Unreachable
from tenfold.server.runtime.serve import run
from tenfold.server.runtime.settings import Settings
from tenfold.server.auth.tokens import Tokens
def full(*words, **named):
    raise OperationalError("INSERT", {}, Exception("database or disk is full"))
Tokens.create = full
try:
    run(Settings(state_dir=Path(sys.argv[1]), nodes=(), port=0), print)
except Unreachable as told:
    print(told.code, told)
"""


def test_a_full_disk_is_told_and_is_no_bug(tmp_path: Path):
    home = tmp_path / "home"
    # A process of its own: serving sets the mask and the loggers of the whole process.
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(home)], capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("journal-unwritable ")
    assert "database or disk is full" in said.stdout
    assert said.stderr == ""
    assert not (home / "address.json").exists()
