"""Values, disks and folders that the tests of checkpoints share."""

from pathlib import Path
from typing import Any

from benchmarks.checkpoint_crashes import same
from tenfold.checkpoint import How, load, save
from tenfold.checkpoint.files import Files
from tests.rigs.forgetful import ForgetfulDisk

__all__ = ["FOLDER", "LyingDisk", "TearingDisk", "on", "same", "there_and_back"]

FOLDER = Path("run")


def on(files: Files, attempt: int = 0, *, wait_s: float = 0.2) -> How:
    return How(files=files, attempt=attempt, wait_s=wait_s)


def there_and_back(value: object) -> Any:
    disk = ForgetfulDisk()
    save(FOLDER, 1, value, how=How(files=disk))
    found = load(FOLDER, files=disk)
    assert found is not None
    return found.values


class LyingDisk(ForgetfulDisk):
    """Says that names are synced when they are not."""

    def sync_folder(self, path: Path) -> None:
        self._count()


class TearingDisk(ForgetfulDisk):
    """Says that contents are synced when they are not."""

    def write(self, path, chunks) -> None:
        super().write(path, chunks)
        self._file(path).synced = b""
