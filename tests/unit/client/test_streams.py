"""Where the last lines of a log start."""

import pytest

from tenfold.client.streams import last_lines_start


@pytest.mark.parametrize(
    ("content", "lines", "shown"),
    [
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc", 2, b"b\nc"),
        (b"a\nb\n", 5, b"a\nb\n"),
        (b"a\n\n\n", 2, b"\n\n"),
        (b"a\nb\n", 0, b""),
        (b"", 3, b""),
        (b"\n", 1, b"\n"),
        (b"no line break", 1, b"no line break"),
    ],
)
def test_the_last_lines_start_after_a_line_break(content: bytes, lines: int, shown: bytes):
    assert content[last_lines_start(content, lines) :] == shown
