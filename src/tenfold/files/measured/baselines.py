"""Baselines in one JSON file: each workload with all baselines it ever had, newest last.

Nothing is overwritten but by a whole new file, and a file of another version is refused
rather than guessed at. Two commands that record at once take turns.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tenfold.files.core.document import read_bytes
from tenfold.files.core.read_errors import json_problem
from tenfold.files.core.write import write_new_file
from tenfold.model.baseline import Baseline
from tenfold.model.errors import InputError

SCHEMA = 1
SIZE_MAX_BYTES = 1024 * 1024 * 1024


class _Version(Struct):
    schema: int


class BaselineStore(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of a store."""

    schema: int = SCHEMA
    workloads: dict[str, Annotated[tuple[Baseline, ...], Meta(min_length=1)]] = {}

    def of(self, workload: str) -> tuple[Baseline, ...]:
        """Return the baselines of a workload, oldest first."""
        return self.workloads.get(workload, ())

    def plus(self, workload: str, baseline: Baseline) -> "BaselineStore":
        """Return the store with one more baseline."""
        more = (*self.of(workload), baseline)
        return BaselineStore(workloads={**self.workloads, workload: more})


def read_store(path: Path) -> BaselineStore:
    """Return the baselines in a file, or raise if it cannot be read."""
    if not path.exists():
        raise InputError(
            "no-such-file",
            f"no baselines recorded yet (`{path}` does not exist)",
            "record one with `tenfold baseline record WORKLOAD --in FILE`",
            file=str(path),
        )
    content = read_bytes(path, SIZE_MAX_BYTES)
    try:
        version = msgspec.json.decode(content, type=_Version).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_a_store(path, json_problem(error)) from None
    if version != SCHEMA:
        raise InputError(
            "store-version",
            f"`{path}` has schema version {version}, but this version of Tenfold reads {SCHEMA}",
            "use the version of Tenfold that wrote it, or another file with `--store`",
            file=str(path),
            field="schema",
        )
    try:
        return msgspec.json.decode(content, type=BaselineStore)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_a_store(path, json_problem(error)) from None


def write_store(path: Path, store: BaselineStore) -> None:
    """Write a store whole or not at all."""
    text = msgspec.json.format(msgspec.json.encode(store), indent=1).decode()
    write_new_file(path, text + "\n", force=True)


@contextmanager
def one_writer(path: Path) -> Generator[None]:
    """Lock the folder of a store, so that concurrent writers lose nothing."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise InputError(
            "cannot-write",
            f"`{path}` cannot be written: {error.strerror or error}",
            "check that the folder exists and is writable",
            file=str(path),
        ) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _not_a_store(path: Path, why: str) -> InputError:
    return InputError(
        "not-a-store",
        f"`{path}` is not a baseline file: {why}",
        "use another file with `--store`; `tenfold baseline record` creates one",
        file=str(path),
    )
