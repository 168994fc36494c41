import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold.gateway.forward.usage import LINE_BYTES_MAX, EventStream, LineTooLong, Usage, usage_in


def events(count: int, text: str) -> bytes:
    parts = [
        b"data: " + json.dumps({"choices": [{"delta": {"content": f"{text}{at}"}}]}).encode()
        for at in range(count)
    ]
    usage = {"prompt_tokens": 7, "completion_tokens": count, "prompt_tokens_details": {"cached": 1}}
    parts += [b"data: " + json.dumps({"choices": [], "usage": usage}).encode(), b"data: [DONE]"]
    return b"\n\n".join(parts) + b"\n\n"


@given(st.integers(0, 20), st.text(max_size=30), st.lists(st.integers(1, 200), max_size=40))
def test_events_and_usage_are_found_wherever_the_stream_is_cut(
    count: int, text: str, cuts: list[int]
):
    whole, stream, at = events(count, text), EventStream(), 0
    for size in [*cuts, len(whole)]:
        if part := whole[at : at + size]:
            stream.feed(part)
        at += size
    # A cut between a line break and `data:` is the only place where an event can be missed.
    assert stream.is_between_events
    assert count + 2 - len(cuts) <= stream.events <= count + 2
    if not cuts:
        assert stream.usage() == Usage(7, count)


def test_what_a_model_says_is_no_event_and_no_usage():
    said = 'x\ndata: \n"usage": {"completion_tokens": 99}'
    stream = EventStream()
    stream.feed(b"data: " + json.dumps({"delta": said}).encode() + b"\n\n")
    assert stream.events == 1
    assert stream.usage() == Usage()


def test_a_line_without_an_end_is_cut_off():
    stream = EventStream()
    for _ in range(LINE_BYTES_MAX // 65_536):
        stream.feed(b"x" * 65_536)
    with pytest.raises(LineTooLong):
        stream.feed(b"x")


@pytest.mark.parametrize(
    ("text", "usage"),
    [
        (b'{"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2}}', Usage(3, 2)),
        (b'{"usage": {"input_tokens": 3, "output_tokens": 2}}', Usage(3, 2)),
        (b'{"usage": null}', Usage()),
        (b'{"usage":{"prompt_tokens":-3}}', Usage()),
        (b'{"usage":{"prompt_tokens":99999999999999999999}}', Usage()),
        (b'{"usage":{"prompt_tokens":1}} {"usage":{"prompt_tokens":8}}', Usage(8)),
        (b"\x00\xff", Usage()),
    ],
)
def test_usage_is_read_from_any_text(text: bytes, usage: Usage):
    assert usage_in(text) == usage
