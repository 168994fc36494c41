"""Hostile values by kind: what each may break, in a body as JSON and in an address as text."""

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

DEPTHS = (100, 2_000, 100_000)
TEXTS: Mapping[str, tuple[str, ...]] = {
    "nul": ("a\0b", "a\0", "\0", "a\0" * 50),
    "newline": ("a\nb", "\n", "a\r\nX-Header: b", "a\x0bb", "a\u2028b"),
    "trailing newline": ("a\n", "job-1\n", "1\n", "TRUE_\n", "2d\n"),
    "escape": (
        "\x1b[2J\x1b[31mred",
        "\x1b]0;title\x07",
        "\x9b31m",
        "\x7f\x08\x08",
        "\x1b]8;;http://127.0.0.1/\x1b\\link",
    ),
    "bidi": ("\u202egnp.exe", "\u2066a\u2069", "\u200fa", "a\u200bb", "\u061ca"),
    "traversal": (
        "../../../../../../tmp/tenfold-hostile-up",
        "..",
        ".",
        "/",
        "/etc/shadow",
        "/proc/self/mem",
        "/dev/zero",
        "a/../../../b",
        "~root",
        "file:///etc/passwd",
        "%2e%2e%2f%2e%2e",
        "//" * 1_000,
        "-rf",
        "$(id)",
        "`id`",
    ),
    "depth": ("a/" * 2_000, "../" * 1_300, "[" * 2_000, "{" * 2_000),
    "size": ("x" * 201, "x" * 5_000, "x" * 200_000, "x" * (1 << 20)),
    "unicode": (
        "\ud800",
        "a\udfff",
        "\udc00\ud800",
        "e" + "\u0301" * 60,
        "e" + "\u0301" * 20_000,
        "\U0001f468\u200d" * 30,
        "\ufeffa",
        "\ufffe",
        "\u0130\u0131\ufb01",
        "\uff0e\uff0e\uff0f",
        "\U0010ffff",
    ),
}
RAW: Mapping[str, tuple[bytes, ...]] = {
    "number": (
        b"-1",
        b"0",
        b"0.1",
        b"-0.0",
        b"1e-320",
        b"1e308",
        b"-1e308",
        b"2147483648",
        b"9007199254740993",
        b"9223372036854775808",
        b"-9223372036854775809",
        b"18446744073709551616",
        b"1" + b"0" * 30,
        b"-1" + b"0" * 30,
        b"1" + b"0" * 5_000,
    ),
    "not a number": (b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"0x10", b"01"),
    "type": (
        b"null",
        b"true",
        b'""',
        b"[]",
        b"{}",
        b"[null]",
        b'["a",1,{}]',
        b'{"a":{"b":[]}}',
        b"[[[]]]",
        b'"1"',
        b"1",
    ),
    "depth": tuple(b"[" * depth + b"]" * depth for depth in DEPTHS)
    + tuple(b'{"a":' * depth + b"1" + b"}" * depth for depth in DEPTHS),
    "size": (
        b"[" + b",".join([b'"a"'] * 2_500) + b"]",
        b"[" + b",".join([b'"%s"' % (b"x" * 190)] * 10_000) + b"]",
        b"[" + b",".join([b"{}"] * 100_000) + b"]",
        b"{" + b",".join(b'"K%d":"v"' % number for number in range(20_000)) + b"}",
    ),
    "not text": (b'"\xff\xfe"', b'"\xc0\xaf"', b'"a\x00b"', b'"a\nb"', b'"\\ud83d"', b'"\\x"'),
}
KINDS = tuple(dict.fromkeys((*TEXTS, *RAW, "duplicate", "link")))


class Value(NamedTuple):
    """One hostile value as it is written in JSON, and as text where it is one."""

    kind: str
    json: bytes
    text: str | None = None


def values(links: tuple[str, ...] = ()) -> Iterator[Value]:
    """Yield every hostile value; `links` are paths of symbolic links that lead elsewhere."""
    for kind, texts in TEXTS.items():
        for text in texts:
            yield Value(kind, json.dumps(text).encode(), text)
    for kind, written in RAW.items():
        for raw in written:
            yield Value(kind, raw)
    for link in links:
        yield Value("link", json.dumps(link).encode(), link)
