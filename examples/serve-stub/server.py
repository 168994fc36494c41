"""A stub of an OpenAI-compatible server: plain Python, no model, for a laptop without a GPU.

It answers `/v1/chat/completions` and `/v1/completions` with made-up words at the pace of a real
engine: a prompt takes time by its length, and each word of the answer a little more. Further
requests than `--slots` wait. It is not for production: it reads whole bodies, and knows no tokens.
"""

import argparse
import json
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog")


class Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    protocol_version = "HTTP/1.1"
    server: "Stub"

    def do_GET(self) -> None:
        """Say whether it is ready, and which models it has."""
        if self.path == "/health":
            status = 200 if self.server.is_ready() else 503
            self._send(status, {"status": "ok" if status == 200 else "loading"})
        elif self.path == "/v1/models":
            model = {"id": self.server.options.model, "object": "model", "owned_by": "stub"}
            self._send(200, {"object": "list", "data": [model]})
        else:
            self._send(404, _error("no such route"))

    def do_POST(self) -> None:
        """Answer a completion, as one piece or as a stream."""
        is_chat = self.path == "/v1/chat/completions"
        if not is_chat and self.path != "/v1/completions":
            self._send(404, _error("no such route"))
            return
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            request = json.loads(body)
            tokens = int(request.get("max_tokens") or 16)
        except (ValueError, AttributeError, TypeError):
            self._send(400, _error("the body is not a request"))
            return
        options = self.server.options
        if self.server.fails():
            self._send(500, _error("this revision is bad"))
            return
        prompt = max(1, len(body) // 4)
        with self.server.slots:
            time.sleep(prompt / options.prefill_tokens_per_s)
            if request.get("stream"):
                self._stream(is_chat, prompt, tokens)
            else:
                time.sleep(tokens / options.decode_tokens_per_s)
                self._send(200, self._answer(is_chat, prompt, tokens))

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for each request."""

    def _answer(self, is_chat: bool, prompt: int, tokens: int) -> dict[str, Any]:
        text = " ".join(WORDS[place % len(WORDS)] for place in range(tokens))
        choice = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        return {
            "id": "stub-1",
            "object": "chat.completion" if is_chat else "text_completion",
            "created": 0,
            "model": self.server.options.model,
            "choices": [{"index": 0, "finish_reason": "length", **choice}],
            "usage": _usage(prompt, tokens),
        }

    def _stream(self, is_chat: bool, prompt: int, tokens: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for place in range(tokens):
            time.sleep(1 / self.server.options.decode_tokens_per_s)
            word = WORDS[place % len(WORDS)] + " "
            part = {"delta": {"content": word}} if is_chat else {"text": word}
            last = "length" if place == tokens - 1 else None
            self._event({"choices": [{"index": 0, "finish_reason": last, **part}]}, is_chat)
        self._event({"choices": [], "usage": _usage(prompt, tokens)}, is_chat)
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _event(self, more: dict[str, Any], is_chat: bool) -> None:
        kind = "chat.completion.chunk" if is_chat else "text_completion"
        event = {"id": "stub-1", "object": kind, "model": self.server.options.model, **more}
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Stub(ThreadingHTTPServer):
    """The server."""

    daemon_threads = True
    request_queue_size = 1_024

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__((options.host, options.port), Handler)
        self.options = options
        self.slots = threading.BoundedSemaphore(options.slots)
        self._ready_s = time.monotonic() + options.load_s
        self._count = 0
        self._lock = threading.Lock()

    def is_ready(self) -> bool:
        """Return whether the model is loaded."""
        return time.monotonic() >= self._ready_s

    def fails(self) -> bool:
        """Return whether this request fails: every n-th one does, for `--fail-percent`."""
        with self._lock:
            self._count += 1
            return self._count * self.options.fail_percent % 100 < self.options.fail_percent


def _usage(prompt: int, tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": tokens,
        "total_tokens": prompt + tokens,
    }


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--model", default="stub")
    parser.add_argument("--load-s", type=float, default=1.0, help="time until it is ready")
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--prefill-tokens-per-s", type=float, default=2_000)
    parser.add_argument("--decode-tokens-per-s", type=float, default=50)
    parser.add_argument("--fail-percent", type=float, default=0, help="share of failing requests")
    options = parser.parse_args()
    server = Stub(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"serving `{options.model}` at http://{options.host}:{options.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
