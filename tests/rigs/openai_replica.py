"""A replica that speaks the OpenAI API and generates words at a stated speed, as a process.

    python -m tests.rigs.openai_replica --slots 4 --tokens-per-s 50 --prefill-tokens-per-s 5000

It prints its address on the first line. Words follow from the prompt alone, so two replicas answer
the same. `POST /control` makes it misbehave; `GET /stats` says what it has seen. `--speed 20` makes
its time pass 20 times as fast.

Modes of `/control` (`{"mode": ..., "requests": how many, 0 for all, "value": ...}`):
  ok               answers as it should
  status           answers with the status `value`
  close            closes the connection without an answer
  hang             never answers
  die              stops in the middle of an answer, after `value` words
  exit             ends the process in the middle of an answer, after `value` words
  stall            stops sending after `value` words, and keeps the connection
  long-line        sends a line of `value` bytes in an event stream
  garbage          sends what is not HTTP
  split-header     sends a header with `value` in it, as it is
  no-usage         reports no usage
"""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from aiohttp import web

ROOT = Path(__file__).parents[2]
WORDS = ("fast", "tall", "calm", "blue", "warm", "soft", "deep", "bold")
INFERENCE = ("/v1/chat/completions", "/v1/completions", "/v1/embeddings")


class Speed:
    """How fast a replica is; 0 is instantly."""

    def __init__(self, tokens_per_s: float, prefill_tokens_per_s: float, speed: float) -> None:
        self.token_s = 1 / (tokens_per_s * speed) if tokens_per_s else 0.0
        self.prefill_token_s = 1 / (prefill_tokens_per_s * speed) if prefill_tokens_per_s else 0.0


class OpenAiReplica:
    """The state of one replica, and its routes."""

    def __init__(self, name: str, slots: int, speed: Speed, model: str = "stub") -> None:
        self.name = name
        self.model = model
        self.is_ready = True
        self._speed = speed
        self._slots = asyncio.Semaphore(slots or 1_000_000)
        self._mode: dict[str, Any] = {"mode": "ok"}
        self.requests = self.running = self.running_most = self.words = 0
        self.seen: list[dict[str, Any]] = []

    def app(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=256 << 20)
        app.router.add_get("/health", self._health)
        app.router.add_get("/stats", self._stats)
        app.router.add_post("/control", self._control)
        app.router.add_get("/v1/models", self._models)
        for path in INFERENCE:
            app.router.add_post(path, self._inference)
        app.router.add_route("*", "/{rest:.*}", self._echo)
        return app

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if self.is_ready else 503)

    async def _stats(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "requests": self.requests,
                "running": self.running,
                "running_most": self.running_most,
                "words": self.words,
                "seen": self.seen[-2_000:],
            }
        )

    async def _control(self, request: web.Request) -> web.Response:
        self._mode = await request.json()
        self.is_ready = bool(self._mode.get("ready", self.is_ready))
        return web.json_response(self._mode)

    async def _models(self, request: web.Request) -> web.Response:
        model = {"id": self.model, "object": "model", "created": 0, "owned_by": "tenfold"}
        return web.json_response({"object": "list", "data": [model]})

    async def _echo(self, request: web.Request) -> web.StreamResponse:
        """Answer other paths with what arrived."""
        self.requests += 1
        body = await request.read()
        mode = self._next_mode()
        if mode["mode"] != "ok" and (answer := await self._misbehave(request, mode)) is not None:
            return answer
        said = {
            "replica": self.name,
            "method": request.method,
            "path": request.raw_path,
            "headers": [list(pair) for pair in request.headers.items()],
            "bytes": len(body),
            "crc32": crc32(body),
        }
        return web.json_response(said, headers={"X-Replica": self.name})

    async def _inference(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        try:
            asked: dict[str, Any] = await request.json()
        except ValueError:
            return _error(400, "the body is not JSON")
        self.seen.append(
            {
                "user": asked.get("user", ""),
                "model": asked.get("model", ""),
                "path": request.path,
                "request_id": request.headers.get("X-Request-Id", ""),
                "traceparent": request.headers.get("traceparent", ""),
                "tracestate": request.headers.get("tracestate", ""),
                "credentials": [
                    name
                    for name in ("Authorization", "Cookie", "X-Api-Key")
                    if name in request.headers
                ],
            }
        )
        mode = self._next_mode()
        if (answer := await self._misbehave(request, mode)) is not None:
            return answer
        if not isinstance(asked.get("model"), str):
            return _error(400, "`model` is missing")
        if isinstance(most := asked.get("max_tokens"), int) and most < 0:
            return _error(400, "`max_tokens` must be positive")
        async with self._slot():
            return await self._generate(request, asked, mode)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None, None]:
        async with self._slots:
            self.running += 1
            self.running_most = max(self.running_most, self.running)
            try:
                yield
            finally:
                self.running -= 1

    def _next_mode(self) -> dict[str, Any]:
        mode, left = self._mode, self._mode.get("requests", 0)
        if left == 1:
            self._mode = {"mode": "ok"}
        elif left > 1:
            self._mode = {**mode, "requests": left - 1}
        return mode

    async def _misbehave(
        self, request: web.Request, mode: dict[str, Any]
    ) -> web.StreamResponse | None:
        kind, transport = mode.get("mode", "ok"), request.transport
        if kind == "status":
            return _error(int(mode["value"]), "planted")
        if kind == "hang":
            await asyncio.Event().wait()
        if kind == "close" and transport is not None:
            transport.close()
            return web.Response(status=500)
        if kind == "garbage" and transport is not None:
            transport.write(b"SSH-2.0-this-is-not-http\r\n\r\n")
            transport.close()
            return web.Response(status=500)
        if kind == "split-header" and transport is not None:
            head = f"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Evil: {mode['value']}\r\n\r\n{{}}"
            transport.write(head.encode("latin-1"))
            transport.close()
            return web.Response(status=500)
        return None

    async def _generate(
        self, request: web.Request, asked: dict[str, Any], mode: dict[str, Any]
    ) -> web.StreamResponse:
        prompt = _prompt(asked)
        read = len(prompt) // 4 + 1
        loop = asyncio.get_running_loop()
        begun = loop.time() + read * self._speed.prefill_token_s
        await _sleep_until(begun)
        if request.path.endswith("embeddings"):
            return web.json_response(_embeddings(asked, read))
        words = _words(prompt, _most(asked))
        usage = {
            "prompt_tokens": read,
            "completion_tokens": len(words),
            "total_tokens": read + len(words),
        }
        kind = "chat.completion" if "chat" in request.path else "text_completion"
        base = {
            "id": f"{kind[:4]}-{crc32(prompt):08x}",
            "object": kind,
            "created": 1_700_000_000,
            "model": asked["model"],
        }
        if not asked.get("stream"):
            await _sleep_until(begun + len(words) * self._speed.token_s)
            self.words += len(words)
            answer = {**base, "choices": [_choice(kind, asked, words)], "usage": usage}
            if mode.get("mode") == "no-usage":
                del answer["usage"]
            return web.json_response(answer, headers={"X-Replica": self.name})
        return await self._stream(request, asked, mode, (base, words, usage, begun))

    async def _stream(
        self,
        request: web.Request,
        asked: dict[str, Any],
        mode: dict[str, Any],
        plan: tuple[dict[str, Any], list[str], dict[str, int], float],
    ) -> web.StreamResponse:
        base, words, usage, begun = plan
        kind, stops = mode.get("mode", "ok"), int(mode.get("value", 0) or 0)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream; charset=utf-8", "X-Replica": self.name}
        )
        await response.prepare(request)
        if kind == "long-line":
            await response.write(b"data: ")
            for _ in range(stops >> 16):
                await response.write(b"x" * (1 << 16))
            return response
        is_chat = base["object"] == "chat.completion"
        base = {**base, "object": "chat.completion.chunk"} if is_chat else base
        if is_chat and asked.get("tools"):
            for delta in _tool_deltas(asked):
                await _event(response, {**base, "choices": [_delta(delta)]})
            await _event(response, {**base, "choices": [_delta({}, "tool_calls")]})
            words = []
        for at, word in enumerate(words):
            await _sleep_until(begun + (at + 1) * self._speed.token_s)
            if kind in ("die", "exit", "stall") and at >= stops:
                await self._stop(request, kind)
                return response
            self.words += 1
            if is_chat:
                delta = {"content": word} if at else {"role": "assistant", "content": word}
                await _event(response, {**base, "choices": [_delta(delta)]})
            else:
                choice = {"index": 0, "text": word, "finish_reason": None, "logprobs": None}
                await _event(response, {**base, "choices": [choice]})
        if words:
            last = _delta({}, "length") if is_chat else _text("", "length")
            await _event(response, {**base, "choices": [last]})
        if (asked.get("stream_options") or {}).get("include_usage") and kind != "no-usage":
            await _event(response, {**base, "choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _stop(self, request: web.Request, kind: str) -> None:
        if kind == "exit":
            os._exit(9)
        if kind == "stall":
            await asyncio.Event().wait()
        if request.transport is not None:
            request.transport.abort()


async def _event(response: web.StreamResponse, value: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n")


async def _sleep_until(at_s: float) -> None:
    left_s = at_s - asyncio.get_running_loop().time()
    if left_s > 0:
        await asyncio.sleep(left_s)


def _error(status: int, message: str) -> web.Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return web.json_response({"error": error}, status=status)


def _prompt(asked: dict[str, Any]) -> bytes:
    said = asked.get("messages") or asked.get("prompt") or asked.get("input") or ""
    return json.dumps(said, sort_keys=True).encode()


def _most(asked: dict[str, Any]) -> int:
    return int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16)


def _words(prompt: bytes, count: int) -> list[str]:
    seed = crc32(prompt)
    return [f"{WORDS[(seed >> (at % 24)) % len(WORDS)]}{at} " for at in range(count)]


def expected_text(messages: list[dict[str, Any]], tokens: int) -> str:
    """Return what a replica answers to a conversation."""
    return "".join(_words(_prompt({"messages": messages}), tokens))


def _delta(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}


def _text(text: str, finish: str) -> dict[str, Any]:
    return {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}


def _tool_call(asked: dict[str, Any]) -> dict[str, Any]:
    name = asked["tools"][0]["function"]["name"]
    return {"id": "call-1", "type": "function", "function": {"name": name, "arguments": "{}"}}


def _tool_deltas(asked: dict[str, Any]) -> list[dict[str, Any]]:
    call = _tool_call(asked)
    first = {**call, "index": 0, "function": {"name": call["function"]["name"], "arguments": ""}}
    return [
        {"role": "assistant", "tool_calls": [first]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]},
    ]


def _choice(kind: str, asked: dict[str, Any], words: list[str]) -> dict[str, Any]:
    if kind != "chat.completion":
        return _text("".join(words), "length")
    message: dict[str, Any] = {"role": "assistant", "content": "".join(words)}
    if asked.get("tools"):
        message = {"role": "assistant", "content": None, "tool_calls": [_tool_call(asked)]}
    finish = "tool_calls" if asked.get("tools") else "length"
    return {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}


def _embeddings(asked: dict[str, Any], read: int) -> dict[str, Any]:
    texts = asked.get("input") or ""
    texts = [texts] if isinstance(texts, str) else texts
    rows = [
        {"object": "embedding", "index": at, "embedding": [len(str(text)) / 100, 0.5]}
        for at, text in enumerate(texts)
    ]
    return {
        "object": "list",
        "data": rows,
        "model": asked["model"],
        "usage": {"prompt_tokens": read, "total_tokens": read},
    }


class ReplicaProcess:
    """A replica that runs as a process of its own; stop it with `close`."""

    def __init__(self, *options: str, port: int = 0) -> None:
        self._options = options
        self.process = self._start(port)
        self.url = self._address()

    def _start(self, port: int) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.rigs.openai_replica",
                "--port",
                str(port),
                *self._options,
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _address(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line.startswith("http://"), f"the replica did not start: {line!r}"
        return line

    def control(self, mode: str, **values: Any) -> None:
        """Make it misbehave, or behave again."""
        body = json.dumps({"mode": mode, **values}).encode()
        request = urllib.request.Request(f"{self.url}/control", body, method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200

    def stats(self) -> dict[str, Any]:
        """Return what it has seen."""
        with urllib.request.urlopen(f"{self.url}/stats", timeout=60) as answer:
            return json.load(answer)

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start it again at the same address."""
        self.process = self._start(int(self.url.rpartition(":")[2]))
        self._address()

    def close(self) -> None:
        """End it, if it runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()


async def serve(replica: OpenAiReplica, port: int) -> tuple[web.AppRunner, str]:
    """Start a replica in this process; return its runner and its address."""
    runner = web.AppRunner(replica.app(), handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=4_096)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def _main(arguments: argparse.Namespace) -> None:
    await asyncio.sleep(arguments.startup_s)
    speed = Speed(arguments.tokens_per_s, arguments.prefill_tokens_per_s, arguments.speed)
    _, url = await serve(
        OpenAiReplica(arguments.name, arguments.slots, speed, arguments.model), arguments.port
    )
    print(url, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Run a replica until it is killed."""
    parser = argparse.ArgumentParser(description="a replica that speaks the OpenAI API")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--name", default="replica")
    parser.add_argument("--model", default="stub")
    parser.add_argument("--slots", type=int, default=0, help="requests at a time; 0: no limit")
    parser.add_argument("--tokens-per-s", type=float, default=0.0, help="per request; 0: at once")
    parser.add_argument("--prefill-tokens-per-s", type=float, default=0.0, help="0: at once")
    parser.add_argument("--speed", type=float, default=1.0, help="how fast time passes")
    parser.add_argument("--startup-s", type=float, default=0.0, help="before it listens")
    try:
        import uvloop  # noqa: PLC0415

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_main(parser.parse_args()))
    except ImportError:
        asyncio.run(_main(parser.parse_args()))


if __name__ == "__main__":
    main()
