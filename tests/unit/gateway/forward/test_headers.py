from multidict import CIMultiDict, CIMultiDictProxy

from tenfold.gateway.forward.headers import request_headers, request_id, response_headers


def proxied(*pairs: tuple[str, str]) -> "CIMultiDictProxy[str]":
    return CIMultiDictProxy(CIMultiDict(pairs))


def test_credentials_and_headers_of_one_connection_are_not_sent_on():
    sent = request_headers(
        proxied(
            ("Authorization", "Bearer tf_secret"),
            ("Cookie", "session=1"),
            ("X-Api-Key", "secret"),
            ("Proxy-Authorization", "Basic x"),
            ("Connection", "close, X-Private"),
            ("X-Private", "1"),
            ("TE", "trailers"),
            ("Upgrade", "websocket"),
            ("Transfer-Encoding", "chunked"),
            ("Content-Length", "3"),
            ("Host", "gateway"),
            ("X-Forwarded-For", "10.0.0.1"),
            ("X-Tenfold-Service", "chat"),
            ("Content-Type", "application/json"),
            ("traceparent", "00-1-2-01"),
            ("X-Twice", "1"),
            ("X-Twice", "2"),
        ),
        keep_encoding=False,
    )
    assert sent.pop("X-Request-Id")
    assert list(sent.items()) == [
        ("Content-Type", "application/json"),
        ("traceparent", "00-1-2-01"),
        ("X-Twice", "1"),
        ("X-Twice", "2"),
        ("Accept-Encoding", "identity"),
    ]


def test_headers_of_one_connection_do_not_come_back():
    back = response_headers(
        proxied(
            ("Connection", "X-Hop"),
            ("X-Hop", "1"),
            ("Server", "uvicorn"),
            ("Keep-Alive", "timeout=5"),
            ("Set-Cookie", "a=1"),
            ("Content-Type", "text/plain"),
        )
    )
    assert list(back.items()) == [("Set-Cookie", "a=1"), ("Content-Type", "text/plain")]


def test_a_request_id_is_kept_if_it_is_a_word():
    assert request_id("abc-1.2_3") == "abc-1.2_3"
    for bad in ("", "a b", "a\r\nb", "x" * 200, '"; DROP'):
        assert request_id(bad) != bad
        assert len(request_id(bad)) < 30
    assert request_id("") != request_id("")
