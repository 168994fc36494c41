"""Any bytes in a file give a value or an error that names the file, and nothing else.

No other exception, no hang, no memory without bound. In the suite hypothesis draws a few files
for each reader; TENFOLD_FUZZ=n (`./dev soak hostile`) draws n.
"""

import os
import resource
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hostile.files.readers import NASTY, NOT_READERS, READERS, Reader, public_readers
from tenfold.model.errors import TenfoldError

EXAMPLES = int(os.environ.get("TENFOLD_FUZZ", "12"))
HANG_S = 60
MEMORY_BYTES = 2 << 30
"""More than this process had when a file was opened."""
BUNCH = st.binary(max_size=40)
PIECES = st.sampled_from(
    [
        *(bytes([one]) for one in b"\0\xff\n\"'[]{}=:,|-#\t\r"),
        *(b"[[", b"nan", b"1e999", b"-1", b"9" * 40, b"9" * 5_000, b"null", b"true", b"[1-"),
        *(b"\xed\xa0\x80", b"n[1-9999999]", b"&a ", b"*a", b"!!int ", b"<<: ", b'"""'),
        b"\\ud800",
    ]
)
SLOW = {"load_catalogue": 4}
"""Readers that read a whole folder each time: so many times fewer files are drawn for them."""


def relaxed(examples: int) -> settings:
    """Return the settings for so many files."""
    return settings(
        max_examples=max(1, examples),
        deadline=None,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


class Hung(BaseException):
    """A reader did not come to an end."""


@contextmanager
def bounded() -> Generator[None, None, None]:
    """End what takes too long or too much memory; both are then seen as what they are."""

    def stop(_: int, __: FrameType | None) -> None:
        raise Hung

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_BYTES, before[1]))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def read(reader: Reader, path: Path) -> bool:
    """Read a file; tell whether it gave a value. Only an error that says where may come."""
    try:
        with bounded():
            reader.call(path)
    except TenfoldError as error:
        assert error.message
        assert str(path) in f"{error.file} {error.message}", f"{error!r} names no file"
        return False
    return True


def test_every_reader_of_the_room_of_files_is_fuzzed():
    called = {name.rpartition(".")[2] for name in (one.name for one in READERS)}
    missing = [
        name
        for name in public_readers()
        if name.rpartition(".")[2] not in called and name not in NOT_READERS
    ]
    assert missing == []


@pytest.mark.parametrize("reader", READERS, ids=lambda one: f"{one.name}-{one.file}")
def test_files_that_were_made_to_break_it_give_an_error_that_names_them(
    reader: Reader, tmp_path: Path
):
    # In a fork: what ends the whole process is then a finding too.
    found, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(found)
        _read_all(reader, tmp_path / reader.file, told)
        os._exit(0)
    os.close(told)
    with os.fdopen(found) as lines:
        last, *wrong = _last_and_wrong(lines.read().splitlines())
    _, status = os.waitpid(child, 0)
    if status:
        wrong.append(f"{last}: the process ended with {os.waitstatus_to_exitcode(status)}")
    assert wrong == []


def _read_all(reader: Reader, path: Path, told: int) -> None:
    """Read every nasty file, and tell which one is read and what is wrong."""
    for name, content in NASTY.items():
        os.write(told, f"reads {name}\n".encode())
        path.write_bytes(content)
        try:
            read(reader, path)
        except (Exception, Hung) as error:
            said = " ".join(str(error).split())[:200]
            os.write(told, f"{name}: {type(error).__name__} {said}\n".encode())


def _last_and_wrong(lines: list[str]) -> list[str]:
    begun = [line for line in lines if line.startswith("reads ")]
    return [begun[-1] if begun else "nothing", *(one for one in lines if one not in begun)]


@pytest.mark.parametrize("reader", READERS, ids=lambda one: f"{one.name}-{one.file}")
def test_a_file_with_some_bytes_changed_gives_a_value_or_an_error_that_names_it(
    reader: Reader, tmp_path: Path
):
    seeds, path = reader.seeds(), tmp_path / reader.file

    @relaxed(EXAMPLES // SLOW.get(reader.name, 1))
    @given(st.data())
    def mutated(data: st.DataObject) -> None:
        content = data.draw(st.sampled_from(seeds))
        for _ in range(data.draw(st.integers(1, 5))):
            start = data.draw(st.integers(0, len(content)))
            length = data.draw(st.integers(0, 30))
            content = content[:start] + data.draw(PIECES | BUNCH) + content[start + length :]
        path.write_bytes(content)
        read(reader, path)

    mutated()
