"""The `openai` package sees the same through the gateway as at the replica itself."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.rigs.gateway import GatewayProcess, chat_service, state_of, token_for
from tests.rigs.openai_replica import ReplicaProcess

openai = pytest.importorskip("openai", reason="the openai package is not installed")

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}
MESSAGES = [{"role": "user", "content": "What is it like outside?"}]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in os.environ if one.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in [one for one in os.environ if one.startswith("OPENAI_")]:
        monkeypatch.delenv(name)


def conversations(client: Any, replica: ReplicaProcess) -> Iterator[tuple[str, object]]:
    """Yield what a client sees, part by part."""
    chat = client.chat.completions
    yield "models", [one.id for one in client.models.list()]
    yield "chat", chat.create(model="stub", messages=MESSAGES).model_dump()
    yield "completion", client.completions.create(model="stub", prompt="Once").model_dump()
    yield "embedding", client.embeddings.create(model="stub", input=["a", "b"]).model_dump()
    stream = chat.create(
        model="stub", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    yield "stream", [one.model_dump() for one in stream]
    completion = client.completions.create(model="stub", prompt="Once", stream=True)
    yield "completion stream", [one.model_dump() for one in completion]
    tools = chat.create(model="stub", messages=MESSAGES, tools=[TOOL])
    yield "tools", tools.model_dump()
    calls = chat.create(model="stub", messages=MESSAGES, tools=[TOOL], stream=True)
    yield "tools stream", [one.model_dump() for one in calls]
    raw = chat.with_raw_response.create(model="stub", messages=MESSAGES)
    yield "raw", (raw.status_code, raw.headers["content-type"], raw.text)
    for status in (400, 401, 404, 422, 429, 500, 503):
        # The client repeats 429 and 5xx itself, unless told otherwise.
        replica.control("status", value=status)
        with pytest.raises(openai.APIStatusError) as error:
            client.with_options(max_retries=0).chat.completions.create(
                model="stub", messages=MESSAGES
            )
        yield f"status {status}", (type(error.value).__name__, error.value.body)
    replica.control("status", value=429, requests=1)
    retried = client.with_options(max_retries=2).chat.completions.create(
        model="stub", messages=MESSAGES
    )
    yield "retried", retried.model_dump()
    with pytest.raises(openai.BadRequestError) as refused:
        chat.create(model="stub", messages=MESSAGES, max_tokens=-1)
    yield "refused", refused.value.body


def test_the_transcript_is_the_same(
    replica: Callable[..., ReplicaProcess], gateway: Callable[..., GatewayProcess]
):
    one = replica()
    # As an engine alone: no replica to repeat a request at.
    front = gateway(state_of(chat_service([one.url]), tokens=(token_for("a-key", "anyone"),)))

    def transcript(url: str) -> list[tuple[str, object]]:
        with openai.OpenAI(base_url=f"{url}/v1", api_key="a-key", max_retries=0) as client:
            return list(conversations(client, one))

    direct, through = transcript(one.url), transcript(front.url)
    assert [name for name, _ in direct] == [name for name, _ in through]
    for (name, alone), (_, proxied) in zip(direct, through, strict=True):
        assert alone == proxied, name
