"""Coordinate ranks that share only a folder to save one checkpoint.

Rank 0 announces the save in a new folder with a unique number. The others find the request, write
their shards there and wait until the checkpoint is committed. If the request was from a run that
died, its folder disappears and they answer the next one. Rank 0 counts a shard when its record is
there, and commits when all are.
"""

from pathlib import Path

from tenfold.checkpoint.errors import CheckpointError, Damaged
from tenfold.checkpoint.files import Files
from tenfold.checkpoint.manifest import Entry, SaveRequest, leftovers, read_manifest, read_request
from tenfold.checkpoint.sealed import read_sealed, write_sealed
from tenfold.checkpoint.shard import shard_of, write_shard

_REQUEST_FILE = "call.json"


def announce(files: Files, folder: Path, request: SaveRequest) -> None:
    """Create the folder of a save and write its request."""
    staging = folder / request.staging
    files.make_folder(staging)
    if request.ranks > 1:
        write_sealed(files, staging / _REQUEST_FILE, request.record())


def await_shards(files: Files, folder: Path, request: SaveRequest, wait_s: float) -> None:
    """Return when every rank's shard is there, or raise after `wait_s` without a new one."""
    missing = list(range(request.ranks))
    waited_s = 0.0
    while True:
        still = [
            rank
            for rank in missing
            if shard_of(files, folder / request.staging, request.nonce, rank) is None
        ]
        if not still:
            return
        waited_s = waited_s + files.pause() if still == missing else 0.0
        missing = still
        if waited_s > wait_s:
            listed = ", ".join(str(rank) for rank in missing[:8])
            raise CheckpointError(
                code="checkpoint-shards-missing",
                message=f"step {request.step}: no shard from rank {listed} after {wait_s:g} s",
                hint="every rank must call `save` for the same step; check whether one has died",
            )


class RankSave:
    """A rank's part in a save: find the request, write the shard, wait for the commit."""

    def __init__(
        self,
        files: Files,
        folder: Path,
        wanted: SaveRequest,
        rank: int,
        values: object,
        *,
        read_back: bool,
    ) -> None:
        self._files = files
        self._folder = folder
        self._wanted_request = wanted
        self._rank = rank
        self._values = values
        self._read_back = read_back
        self._answered_request: SaveRequest | None = None

    def wait(self, wait_s: float) -> Path:
        """Return the committed checkpoint, or raise after `wait_s` without progress."""
        waited_s = 0.0
        while waited_s <= wait_s:
            path = self._committed()
            if path is not None:
                return path
            waited_s = 0.0 if self._write_answer() else waited_s + self._files.pause()
        raise CheckpointError(
            code="checkpoint-abandoned",
            message=f"step {self._wanted_request.step}: no checkpoint by rank 0 in {wait_s:g} s",
            hint="check the log of rank 0; it must call `save` for the same step",
        )

    def _write_answer(self) -> bool:
        """Write the shard for a request that has none yet; return whether it was written."""
        request = self._find_request()
        if request is None or request == self._answered_request:
            return False
        staging = self._folder / request.staging
        try:
            write_shard(
                self._files,
                staging,
                request.nonce,
                self._rank,
                self._values,
                read_back=self._read_back,
            )
        except FileNotFoundError:
            # The folder of a dead run was removed meanwhile.
            return False
        self._answered_request = request
        return True

    def _find_request(self) -> SaveRequest | None:
        """Return the newest request for this step, number of ranks, attempt and launch."""
        for entry in leftovers(self._files, self._folder):
            if _REQUEST_FILE not in self._files.names(entry.path):
                continue
            try:
                request = read_request(read_sealed(self._files, entry.path / _REQUEST_FILE))
            except Damaged:
                continue
            same = (request.step, request.ranks, request.attempt, request.run)
            if same == self._wanted() and entry.path.name == request.staging:
                return request
        return None

    def _wanted(self) -> tuple[int, int, int, str]:
        wanted = self._wanted_request
        return wanted.step, wanted.ranks, wanted.attempt, wanted.run

    def _committed(self) -> Path | None:
        """Return the committed checkpoint with this rank's shard; None until then."""
        request = self._answered_request
        if request is None or request.name not in self._files.names(self._folder):
            return None
        entry = Entry(self._folder / request.name, request.step, request.save)
        try:
            found = read_manifest(self._files, entry).request
        except Damaged:
            return None
        return entry.path if found.nonce == request.nonce else None
