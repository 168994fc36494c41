"""Serve the model of `train.py` with an OpenAI-compatible API: plain Python and numpy.

A token is one character. Each answer is paced at `--tokens-per-s`, so that a replica serves the
same number of requests on any machine; further ones than `--slots` wait. It is an example, not
for production.
"""

import argparse
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np


class BadModel(Exception):
    """The model cannot answer."""


class Model:
    """A trained model."""

    def __init__(self, folder: Path) -> None:
        about = json.loads((folder / "config.json").read_text())
        self._characters: str = about["characters"]
        self._context: int = about["context"]
        with np.load(folder / "weights.npz") as weights:
            self._weights = {name: weights[name] for name in weights.files}

    def characters(self, prompt: str, count: int, temperature: float, seed: int) -> Iterator[str]:
        """Yield what follows a prompt, one character at a time."""
        draw = np.random.default_rng(seed)
        known = [self._characters.index(one) for one in prompt if one in self._characters]
        context = ([0] * self._context + known)[-self._context :]
        for _ in range(count):
            chances = self._chances(context, temperature)
            number = int(np.searchsorted(np.cumsum(chances), draw.random()))
            number = min(number, len(self._characters) - 1)
            context = [*context[1:], number]
            yield self._characters[number]

    def _chances(self, context: list[int], temperature: float) -> np.ndarray:
        weights = self._weights
        inputs = weights["embedding"][context].reshape(-1)
        hidden = np.maximum(inputs @ weights["hidden"] + weights["hidden_bias"], 0)
        scores = (hidden @ weights["output"] + weights["output_bias"]) / max(temperature, 0.01)
        if not np.isfinite(scores).all():
            raise BadModel("the model answers with numbers that are not finite")
        chances = np.exp(scores - scores.max())
        return chances / chances.sum()


class Handler(BaseHTTPRequestHandler):
    """Answers requests."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        """Say that it is ready, and which model it has."""
        name = self.server.options.name
        if self.path == "/health":
            self._send(200, {"status": "ok"})
        elif self.path == "/v1/models":
            model = {"id": name, "object": "model", "created": 0, "owned_by": "you"}
            self._send(200, {"object": "list", "data": [model]})
        else:
            self._send(404, _error("no such route"))

    def do_POST(self) -> None:
        """Answer a completion, as one piece or as a stream."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path not in ("/v1/chat/completions", "/v1/completions"):
            self._send(404, _error("no such route"))
            return
        try:
            request = json.loads(body)
            prompt = _prompt(request)
            count = int(request.get("max_tokens") or request.get("max_completion_tokens") or 60)
            seed = int(request.get("seed") or 0)
            temperature = float(request.get("temperature", 0.5))
        except (ValueError, TypeError, KeyError, AttributeError):
            self._send(400, _error("the body is not a request"))
            return
        with self.server.slots:
            said = self.server.said(prompt, count, temperature, seed)
            try:
                first = next(said)
            except BadModel as error:
                self._send(500, _error(str(error)))
                return
            usage = _usage(len(prompt), count)
            if request.get("stream"):
                self._stream(first, said, usage)
            else:
                self._send(200, self._answer(first + "".join(said), usage))

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for each request."""

    def _answer(self, text: str, usage: dict[str, int]) -> dict[str, Any]:
        is_chat = self.path == "/v1/chat/completions"
        choice = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        return {
            **self._head("chat.completion" if is_chat else "text_completion"),
            "choices": [{"index": 0, "finish_reason": "length", **choice}],
            "usage": usage,
        }

    def _stream(self, first: str, said: Iterator[str], usage: dict[str, int]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self._part(first, None)
        for one in said:
            self._part(one, None)
        self._part("", "length")
        kind = "chat.completion.chunk" if "chat" in self.path else "text_completion"
        self._event({**self._head(kind), "choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _part(self, text: str, reason: str | None) -> None:
        is_chat = "chat" in self.path
        part = {"delta": {"content": text}} if is_chat else {"text": text}
        choice = {"index": 0, "finish_reason": reason, **part}
        kind = "chat.completion.chunk" if is_chat else "text_completion"
        self._event({**self._head(kind), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": "cmpl-1", "object": kind, "created": 0, "model": self.server.options.name}

    def _event(self, event: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def _send(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """The server."""

    daemon_threads = True
    request_queue_size = 1_024

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.slots = threading.BoundedSemaphore(options.slots)
        # The model is loaded before the port is open, so an answer means that it is ready.
        self._model = Model(Path(options.model))
        super().__init__((options.host, options.port), Handler)

    def said(self, prompt: str, count: int, temperature: float, seed: int) -> Iterator[str]:
        """Yield an answer at the pace of this server."""
        due_s = time.monotonic()
        for one in self._model.characters(prompt, count, temperature, seed):
            due_s += 1 / self.options.tokens_per_s
            time.sleep(max(0.0, due_s - time.monotonic()))
            yield one


def _prompt(request: dict[str, Any]) -> str:
    if "messages" in request:
        return str(request["messages"][-1]["content"])
    return str(request["prompt"])


def _usage(prompt: int, count: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "server_error"}}


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="folder that train.py wrote")
    parser.add_argument("--name", default="chars", help="name of the model in answers")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--slots", type=int, default=8, help="requests answered at a time")
    parser.add_argument("--tokens-per-s", type=float, default=20, help="pace of each answer")
    options = parser.parse_args()
    server = Server(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"serving {options.model} at http://{options.host}:{options.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
