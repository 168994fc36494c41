"""What arrives over the wire: chunks with signatures and trailers, and hostile requests.

Every hostile request is refused or cut off, and the server answers the next good one.
"""

import socket
from base64 import b64encode
from collections.abc import Iterator
from zlib import crc32

import pytest

from tests.rigs.objects import ObjectServer, object_server
from tests.rigs.signed_requests import Signer, exchange, statuses

CLOSE = {"connection": "close"}
DATA = [b"a" * 70_000, b"b" * 8_192, b"c"]
WHOLE = b"".join(DATA)
CRC = b64encode(crc32(WHOLE).to_bytes(4, "big")).decode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectServer]:
    with object_server(tmp_path_factory.mktemp("objects")) as running:
        running.s3().create_bucket(Bucket="wire")
        yield running


@pytest.fixture
def signer(server: ObjectServer) -> Signer:
    host, port = server.address
    return Signer("VISIONKEY", "vision/secret", f"{host}:{port}")


def streamed(signer: Signer, kind: str, *, spoil: str = "", crc: str = CRC) -> bytes:
    """Return a PUT in chunks; `spoil` says what is wrong with it."""
    has_trailer, is_signed = kind.endswith("TRAILER"), "UNSIGNED" not in kind
    extra = {"x-amz-decoded-content-length": str(len(WHOLE)), "content-encoding": "aws-chunked"}
    if has_trailer:
        extra["x-amz-trailer"] = "x-amz-checksum-crc32"
    head, previous = signer.head("PUT", "/wire/streamed", kind, {**extra, **CLOSE})
    body = b""
    for data in (*DATA, b""):
        previous = signer.chunk(previous, b"other" if spoil == "chunk" and data else data)
        extension = f";chunk-signature={previous}" if is_signed else ""
        body += f"{len(data):x}{extension}\r\n".encode() + data
        body += b"\r\n" if data else b""
    if has_trailer:
        line = f"x-amz-checksum-crc32:{crc}"
        body += f"{line}\r\n".encode()
        if is_signed:
            signed = signer.trailer(previous, line + ("x" if spoil == "trailer" else "") + "\n")
            body += f"x-amz-trailer-signature:{signed}\r\n".encode()
    body += b"\r\n"
    if spoil == "short":
        body = body[:-200]
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


KINDS = (
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
)


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_are_decoded_and_their_framing_is_not_stored(
    server: ObjectServer, signer: Signer, kind: str
):
    assert statuses(exchange(server.address, streamed(signer, kind))) == [200]
    got = server.s3().get_object(Bucket="wire", Key="streamed", ChecksumMode="ENABLED")
    assert got["Body"].read() == WHOLE
    assert "ContentEncoding" not in got
    assert got.get("ChecksumCRC32") == (CRC if kind.endswith("TRAILER") else None)


@pytest.mark.parametrize(
    ("kind", "spoil", "crc", "status"),
    [
        (KINDS[0], "chunk", CRC, 403),
        (KINDS[1], "chunk", CRC, 403),
        (KINDS[1], "trailer", CRC, 403),
        (KINDS[0], "short", CRC, 400),
        (KINDS[2], "", "AAAAAA==", 400),
        (KINDS[2], "", "nonsense", 400),
    ],
)
def test_chunks_that_are_wrong_store_nothing(
    server: ObjectServer, signer: Signer, kind: str, spoil: str, crc: str, status: int
):
    server.s3().put_object(Bucket="wire", Key="streamed", Body=b"before")
    sent = streamed(signer, kind, spoil=spoil, crc=crc)
    assert statuses(exchange(server.address, sent)) == [status]
    assert server.s3().get_object(Bucket="wire", Key="streamed")["Body"].read() == b"before"


def test_requests_on_one_connection_are_answered_in_order(server: ObjectServer, signer: Signer):
    server.s3().put_object(Bucket="wire", Key="k", Body=b"data")
    first, _ = signer.head("GET", "/wire/k", "UNSIGNED-PAYLOAD")
    missing, _ = signer.head("GET", "/wire/missing", "UNSIGNED-PAYLOAD")
    last, _ = signer.head("GET", "/wire/k", "UNSIGNED-PAYLOAD", CLOSE)
    sent = f"{first}\r\n{missing}\r\n{last}\r\n".encode()
    answer = exchange(server.address, sent)
    assert statuses(answer) == [200, 404, 200]
    assert answer.count(b"\r\n\r\ndata") == 2


def test_a_body_is_asked_for_only_once_the_request_is_accepted(
    server: ObjectServer, signer: Signer
):
    expect = {"expect": "100-continue"}
    head, _ = signer.head("PUT", "/wire/asked", "UNSIGNED-PAYLOAD")
    with socket.create_connection(server.address, timeout=60) as connection:
        connection.sendall(f"{head}expect: 100-continue\r\ncontent-length: 4\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"data")
        assert statuses(connection.recv(4096)) == [200]
    wrong = f"PUT /wire/asked HTTP/1.1\r\nhost: h\r\nexpect: {expect['expect']}\r\n"
    answer = exchange(server.address, f"{wrong}content-length: 4\r\n\r\n".encode())
    assert statuses(answer) == [403]
    assert b"connection: close" in answer


HOSTILE = {
    "no request": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    "old line end": b"GET /wire/k HTTP/1.1\nhost: h\n\n\r\n\r\n",
    "no host": b"GET /wire/k HTTP/1.1\r\n\r\n",
    "two lengths": (
        b"PUT /wire/k HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab"
    ),
    "length and chunks": (
        b"PUT /wire/k HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n"
        b"transfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nhost: h\r\n\r\n"
    ),
    "odd coding": b"PUT /wire/k HTTP/1.1\r\nhost: h\r\ntransfer-encoding: xchunked\r\n\r\n",
    "negative length": b"PUT /wire/k HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
    "signed length": b"PUT /wire/k HTTP/1.1\r\nhost: h\r\ncontent-length: +1\r\n\r\na",
    "space before colon": b"GET /wire/k HTTP/1.1\r\nhost : h\r\n\r\n",
    "folded header": b"GET /wire/k HTTP/1.1\r\nhost: h\r\nx-a: 1\r\n b\r\n\r\n",
    "zero byte": b"GET /wire/k HTTP/1.1\r\nhost: h\r\nx-a: \x00\r\n\r\n",
    "two hosts": b"GET /wire/k HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    "endless head": b"GET /wire/k HTTP/1.1\r\nhost: h\r\nx-a: " + b"a" * 90_000,
    "many headers": b"GET /wire/k HTTP/1.1\r\nhost: h\r\n" + b"x: 1\r\n" * 300 + b"\r\n",
    "no UTF-8": b"GET /wire/%ff%fe HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
    "another method": b"BREW /wire/k HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n",
    "half a signature": (
        b"GET /wire/k HTTP/1.1\r\nhost: h\r\nconnection: close\r\n"
        b"authorization: AWS4-HMAC-SHA256 Credential=VISIONKEY\r\n\r\n"
    ),
    "scope of nothing": (
        b"GET /wire/k HTTP/1.1\r\nhost: h\r\nconnection: close\r\nx-amz-date: 20260101T000000Z\r\n"
        b"authorization: AWS4-HMAC-SHA256 Credential=VISIONKEY////, SignedHeaders=host, Signature="
        + b"0" * 64
        + b"\r\n\r\n"
    ),
    "broken chunk": (
        b"PUT /wire/k HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n\r\n"
    ),
    "presigned nonsense": (
        b"GET /wire/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=x HTTP/1.1\r\nhost: h\r\n"
        b"connection: close\r\n\r\n"
    ),
    "billion laughs": (
        b"POST /wire?delete HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 60\r\n\r\n"
        b'<!DOCTYPE a [<!ENTITY b "c">]><Delete>&b;</Delete>          '
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_refused_and_the_next_good_one_answered(
    server: ObjectServer, name: str
):
    answer = exchange(server.address, HOSTILE[name], half_close=True)
    found = statuses(answer)
    assert len(found) == 1, "nothing behind a broken request is taken for another"
    assert found[0] in (400, 403, 405, 501), answer
    assert server.s3().list_objects_v2(Bucket="wire")["Name"] == "wire"


@pytest.mark.parametrize(
    "key", ["../../etc/passwd", "..", ".", "a/../../b", "%2e%2e/x", "a//b", "a\x01"]
)
def test_a_key_is_a_name_and_never_a_path(server: ObjectServer, key: str):
    s3 = server.s3()
    s3.put_object(Bucket="wire", Key=f"odd/{key}", Body=key.encode())
    assert s3.get_object(Bucket="wire", Key=f"odd/{key}")["Body"].read() == key.encode()
    listed = s3.list_objects_v2(Bucket="wire", Prefix=f"odd/{key}")["Contents"]
    assert f"odd/{key}" in [one["Key"] for one in listed]


def test_slow_clients_do_not_delay_others(server: ObjectServer, signer: Signer):
    held: list[socket.socket] = []
    try:
        for number in range(50):
            connection = socket.create_connection(server.address, timeout=60)
            head, _ = signer.head("PUT", f"/wire/slow{number}", "UNSIGNED-PAYLOAD")
            unfinished = f"{head}content-length: 1000000\r\n\r\nx" if number % 2 else head[:40]
            connection.sendall(unfinished.encode())
            held.append(connection)
        s3 = server.s3()
        s3.put_object(Bucket="wire", Key="quick", Body=b"x")
        assert s3.get_object(Bucket="wire", Key="quick")["Body"].read() == b"x"
    finally:
        for connection in held:
            connection.close()
    listed = server.s3().list_objects_v2(Bucket="wire", Prefix="slow")
    assert listed["KeyCount"] == 0
