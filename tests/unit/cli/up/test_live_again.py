"""Nothing is submitted twice and nothing read twice, though the control plane is killed."""

import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import tenfold
from patience import HANG_S
from tenfold.client.endpoint import read_address
from unit.up_process import Up

GATED = 'printf "before "; read word < "$GATE"; echo after'


def sent(up: Up, key: str) -> socket.socket:
    """Send a submission, and wait for no answer."""
    place = read_address(up.home)
    assert place is not None
    address = urlsplit(place.url)
    body = json.dumps({"command": ["true"], "name": "once"})
    lines = [
        "POST /api/v1/jobs HTTP/1.1",
        f"Host: {address.netloc}",
        f"Authorization: Bearer {place.token}",
        f"Idempotency-Key: {key}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    line = socket.create_connection((address.hostname, address.port))
    line.sendall(("\r\n".join(lines) + "\r\n\r\n" + body).encode())
    return line


def test_a_submission_whose_answer_a_kill_took_is_made_again_and_is_one_job(up: Up):
    up.start("--virtual-nodes", "1")
    with tenfold.Client() as client:
        for number in range(3):
            line = sent(up, f"key-{number}")
            if number == 1:
                # Wait until it is answered, and look away.
                line.recv(1)
            up.kill()
            line.close()
            up.start("--virtual-nodes", "1")
            # The client was made before the kill: it looks for the new address by itself.
            made = client.submit(key=f"key-{number}", command=["true"], name="once")
            assert client.wait(made.id, timeout_s=HANG_S).state == "succeeded"
            assert client.submit(key=f"key-{number}", command=["true"], name="once") == made
            assert len(list(client.jobs())) == number + 1
    up.interrupt()


def test_a_log_is_followed_over_a_kill_without_a_word_lost_or_doubled(up: Up, tmp_path: Path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    up.start("--virtual-nodes", "1")
    with tenfold.Client() as client, ThreadPoolExecutor() as pool:
        made = client.submit(command=["sh", "-c", GATED], env={"GATE": str(gate)})
        followed = client.logs(made.id, follow=True)
        assert next(followed) == "before "
        up.kill()
        rest = pool.submit("".join, followed)
        up.start("--virtual-nodes", "1")
        gate.write_text("go\n")
        assert rest.result(timeout=HANG_S) == "after\n"
        assert client.job(made.id).state == "succeeded"
    up.interrupt()
