"""Frames of a shell's output are read however the connection cuts them."""

import pytest

from tenfold.model.api.shells import Frame, FrameReader, framed

FRAMES = [Frame("output", b"one"), Frame("alive"), Frame("errors", b"two\n"), Frame("end", b"{}")]


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
def test_frames_are_read_from_pieces_of_any_size(size: int):
    whole, reader = b"".join(framed(one) for one in FRAMES), FrameReader()
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    assert [frame for piece in pieces for frame in reader.read(piece)] == FRAMES


def test_what_is_no_frame_is_an_error():
    with pytest.raises(ValueError, match="not a frame"):
        list(FrameReader().read(b"<html>"))
