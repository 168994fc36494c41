"""Asked over TLS with a certificate that was really made: told to nobody who does not trust it."""

import os
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

import tenfold
from patience import HANG_S, until
from unit.up_process import Up

REQUIRED = os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1"


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of this machine that signed itself, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        reason = "no openssl here: apt-get install openssl"
        pytest.fail(reason) if REQUIRED else pytest.skip(reason)
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    words = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2"]
    name = ["-subj", "/CN=tenfold", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        [openssl, "req", "-x509", *words, *name, *files], check=True, capture_output=True
    )
    return certificate, key


def test_who_trusts_the_certificate_is_answered_and_nobody_else(
    up: Up, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    certificate, key = pair
    said = up.start("--virtual-nodes", "1", "--tls-cert", str(certificate), "--tls-key", str(key))
    (url,) = [line.split()[-1] for line in said if line.startswith("Tenfold is running at ")]
    assert url.startswith("https://127.0.0.1:")
    # The client's own check names the certificate, unless it sees the end of the handshake first.
    until(lambda: "[ssl: " in _said_to_a_stranger(), explain=_said_to_a_stranger)
    with pytest.raises(httpx.TransportError):
        httpx.get(url.replace("https:", "http:") + "/healthz")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with tenfold.Client() as client:
        made = client.submit(command=["echo", "over TLS"])
        assert client.wait(made.id, timeout_s=HANG_S).state == "succeeded"
        assert client.logs(made.id) == "over TLS\n"
    up.interrupt()
    monkeypatch.delenv("SSL_CERT_FILE")


def _said_to_a_stranger() -> str:
    """What a client without the certificate says; on a busy machine, a time-out first."""
    with pytest.raises(tenfold.TenfoldError) as refused, tenfold.Client() as client:
        client.nodes()
    return str(refused.value).lower()


def test_a_key_that_is_not_the_certificates_is_refused_at_the_start(
    up: Up, pair: tuple[Path, Path], tmp_path: Path
):
    wrong = tmp_path / "wrong.key"
    wrong.write_text("this is no key\n")
    with pytest.raises(AssertionError) as said:
        up.start("--virtual-nodes", "1", "--tls-cert", str(pair[0]), "--tls-key", str(wrong))
    assert "server.pem` with `" in str(said.value)
    assert "cannot use `" in str(said.value)
    assert "Tenfold is running at" not in str(said.value)
