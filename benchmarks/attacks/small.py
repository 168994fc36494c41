"""Attacks that are small: names, headers, lengths, causes, handshakes and who cancelled."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from time import monotonic
from urllib.parse import urlsplit

from benchmarks.attacks.target import API, Finding, Target, Tree, wait

DEPTH = 100_000
NAMES = {
    "name": {"name": "a\n"},
    "env": {"env": {"A\n": "b"}},
    "accelerator": {"accelerator": "H100\n"},
    "needs": {"needs": ["a\n"]},
}
SECRET = "part-of-a-damaged-event"
HANDSHAKE_S = 20.0
STUBBORN = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]


def requests(tree: Tree) -> Iterator[Finding]:
    """Names, headers and lengths that are no names, too large, or two at once."""
    with Target(tree) as target, target.wire() as red:
        told = {
            name: red.post(f"{API}/jobs", {"command": ["true"], **more}).status
            for name, more in NAMES.items()
        }
        with target.wire("ops", "operator") as operator:
            ask = {"command": ["true"], "team": "red\n"}
            told["team"] = operator.post(f"{API}/jobs", ask).status
        with target.wire("ops", "admin") as admin:
            ask = {"name": "a\n", "team": "red", "role": "viewer", "days": 1}
            told["token"] = admin.post(f"{API}/tokens", ask).status
        came = ", ".join(f"{name} {status}" for name, status in told.items())
        yield Finding("a newline at the end of", came, set(told.values()) == {422}, "422 each")
        # One large header, below any limit of a whole request.
        large = red.ask("GET", f"{API}/jobs", b"", ("X-Large", "x" * 100_000)).status
        yield Finding("a header of 100 KB", str(large), large in (431, 0), "431")
        both = ("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")
        body = b'14\r\n{"command":["true"]}\r\n0\r\n\r\n'
        answer = red.ask("POST", f"{API}/jobs", body, *both).status
        yield Finding("Transfer-Encoding and Content-Length", str(answer), answer == 400, "400")
        deep = target.root / "deep.yaml"
        deep.write_text("a: " + "[" * DEPTH + "]" * DEPTH)
        done = tree.run("fleet", "check", str(deep))
        said = (done.stdout + done.stderr).replace(f"{deep}", deep.name).strip()
        yield Finding(
            f"YAML {DEPTH:,} levels deep",
            f"exit {done.returncode}, {said.splitlines()[0][:90] if said else 'nothing said'}",
            done.returncode == 2,
            "exit 2",
        )


def unready(tree: Tree) -> Iterator[Finding]:
    """Without a token, a control plane that is not ready says no more than that."""
    with Target(tree) as target:
        made = target.submit({"command": ["true", SECRET]})
        target.end_of(made.json()["id"])
        target.stop()
        cut = f"substr(body, 1, instr(body, '{SECRET}') + {len(SECRET)} - 1)"
        target.sql(f"UPDATE events SET body = {cut} WHERE body LIKE '%{SECRET}%'")
        if not target.start():
            yield Finding("/readyz on a damaged event", "does not start", True, "")
            return
        wait(lambda: target.readyz().status not in (0, 200), 10)
        told = target.readyz()
        shown = SECRET in told.body.decode(errors="replace")
        yield Finding(
            "/readyz without a token, on a damaged event",
            f"{told.status} {told.code()}{', shows parts of the event' if shown else ''}",
            told.status != 503 or (told.code() == "not-ready" and not shown),
            "not-ready, and nothing of the event",
        )


def cancelled(tree: Tree) -> Iterator[Finding]:
    """Who cancelled is known after a kill."""
    with Target(tree) as target:
        made = target.submit({"command": STUBBORN, "grace": "1s"})
        job_id = made.json()["id"]
        wait(lambda: target.job(job_id)["state"] == "running", 30)
        with target.wire() as red:
            status = red.delete(f"{API}/jobs/{job_id}").status
        target.restart()
        target.end_of(job_id)
        told = target.job(job_id)
        reason: dict[str, str] = told.get("reason") or {}
        said = reason.get("sentence", "")
        yield Finding(
            "cancel, kill -9, restart",
            f"{status}; state {told['state']}, `{said}`",
            said == "cancelled by member-of-red",
            "`cancelled by member-of-red`",
        )


def handshakes(tree: Tree) -> Iterator[Finding]:
    """A TLS handshake that never ends is closed."""
    openssl = shutil.which("openssl")
    if openssl is None:
        yield Finding("a TLS handshake without an end", "not tried: no openssl", True, "")
        return
    maker = Target(tree)
    certificate, key = maker.root / "server.pem", maker.root / "server.key"
    words = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "2", "-nodes"]
    name = ["-subj", "/CN=tenfold", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(
        [openssl, "req", "-x509", *words, *name, *files], check=True, capture_output=True
    )
    tls = (f"--tls-cert={certificate}", f"--tls-key={key}")
    with maker, Target(tree, "--virtual-nodes", "1", *tls) as target:
        at = urlsplit(target.url)
        with socket.create_connection((at.hostname or "", at.port or 0)) as one:
            one.settimeout(HANDSHAKE_S)
            one.sendall(b"\x16")
            began_s, closed = monotonic(), True
            try:
                one.recv(1)
            except TimeoutError:
                closed = False
            except OSError:
                pass
            took_s = monotonic() - began_s
        came = f"closed after {took_s:.0f} s" if closed else f"open after {HANDSHAKE_S:.0f} s"
        yield Finding("one byte of a TLS handshake", came, closed, f"closed in {HANDSHAKE_S:.0f} s")
