"""How ranks that share nothing but a folder make one checkpoint.

The first rank announces the save in a new folder, with a number that no other save has. The
others find the announcement, write their shards beside it and wait until the whole counts.
One that answered the announcement of a run that died finds its folder gone and answers the
next. The first rank counts a shard when its record is there, and commits when all are.
"""

from pathlib import Path

from tenfold.checkpoint.errors import CheckpointError, Damaged
from tenfold.checkpoint.files import Files
from tenfold.checkpoint.manifest import Call, Entry, leftovers, read_call, read_manifest
from tenfold.checkpoint.sealed import read_sealed, write_sealed
from tenfold.checkpoint.shard import shard_of, write_shard

_CALL = "call.json"


def announce(files: Files, folder: Path, call: Call) -> None:
    """Make the folder of a save, and say what is to be written into it."""
    staging = folder / call.staging
    files.make_folder(staging)
    if call.ranks > 1:
        write_sealed(files, staging / _CALL, call.record())


def await_shards(files: Files, folder: Path, call: Call, wait_s: float) -> None:
    """Return when every rank's shard is there, or raise after `wait_s` without a new one."""
    missing = list(range(call.ranks))
    waited_s = 0.0
    while True:
        still = [
            rank
            for rank in missing
            if shard_of(files, folder / call.staging, call.nonce, rank) is None
        ]
        if not still:
            return
        waited_s = waited_s + files.pause() if still == missing else 0.0
        missing = still
        if waited_s > wait_s:
            named = ", ".join(str(rank) for rank in missing[:8])
            raise CheckpointError(
                code="checkpoint-shards-missing",
                message=f"step {call.step}: no shard from rank {named} after {wait_s:g} s",
                hint="every rank must call `save` for the same step; see whether one has died",
            )


class Joining:
    """A rank's part in a save: find the call, answer it, see it through."""

    def __init__(
        self, files: Files, folder: Path, asked: Call, rank: int, values: object, *, read_back: bool
    ) -> None:
        self._files = files
        self._folder = folder
        self._asked = asked
        self._rank = rank
        self._values = values
        self._read_back = read_back
        self._answered: Call | None = None

    def see_through(self, wait_s: float) -> Path:
        """Return the checkpoint when it counts, or raise after `wait_s` without progress."""
        waited_s = 0.0
        while waited_s <= wait_s:
            path = self._counted()
            if path is not None:
                return path
            waited_s = 0.0 if self._answer() else waited_s + self._files.pause()
        raise CheckpointError(
            code="checkpoint-abandoned",
            message=f"step {self._asked.step}: the first rank made no checkpoint in {wait_s:g} s",
            hint="see what the first rank says; it must call `save` for the same step",
        )

    def _answer(self) -> bool:
        """Write the shard where a call stands that has no answer yet; tell whether it did."""
        call = self._call()
        if call is None or call == self._answered:
            return False
        staging = self._folder / call.staging
        try:
            write_shard(
                self._files,
                staging,
                call.nonce,
                self._rank,
                self._values,
                read_back=self._read_back,
            )
        except FileNotFoundError:
            # The folder of a run that died was swept away meanwhile.
            return False
        self._answered = call
        return True

    def _call(self) -> Call | None:
        """Return the newest call for this step, these ranks, this attempt and this launch."""
        for entry in leftovers(self._files, self._folder):
            if _CALL not in self._files.names(entry.path):
                continue
            try:
                call = read_call(read_sealed(self._files, entry.path / _CALL))
            except Damaged:
                continue
            same = (call.step, call.ranks, call.attempt, call.run)
            if same == self._wanted() and entry.path.name == call.staging:
                return call
        return None

    def _wanted(self) -> tuple[int, int, int, str]:
        asked = self._asked
        return asked.step, asked.ranks, asked.attempt, asked.run

    def _counted(self) -> Path | None:
        """Return the checkpoint that holds this rank's shard, once there is one."""
        call = self._answered
        if call is None or call.name not in self._files.names(self._folder):
            return None
        entry = Entry(self._folder / call.name, call.step, call.save)
        try:
            found = read_manifest(self._files, entry).call
        except Damaged:
            return None
        return entry.path if found.nonce == call.nonce else None
