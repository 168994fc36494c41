"""Who looks at checkpoints is not held up by what a job put in the place of one."""

import os
from pathlib import Path

import pytest

from tenfold.checkpoint import newest, save
from tenfold.checkpoint.errors import Damaged
from tenfold.checkpoint.files import DISK
from tenfold.checkpoint.sealed import read_all


def test_a_named_pipe_is_no_record(tmp_path: Path):
    os.mkfifo(tmp_path / "record")
    with pytest.raises(Damaged, match="not a regular file"):
        read_all(DISK, tmp_path / "record")


def test_a_checkpoint_of_named_pipes_is_passed_over(tmp_path: Path):
    for step in (1, 2):
        save(tmp_path, step, {"step": step})
    found = newest(tmp_path)
    assert found is not None
    last = Path(found.path)
    for path in list(last.iterdir()):
        path.unlink()
        os.mkfifo(path)
    before = newest(tmp_path)
    assert before is not None
    assert before.step == 1
