"""One API request as a value: what to send, the response type, and whether it may be retried."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Required, TypedDict, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from tenfold.client.problems import not_a_control_plane

API = "/api/v1"
Answer = TypeVar("Answer")


class JobKeys(TypedDict, total=False):
    """The keys of a job file; everything but the command has a default."""

    command: Required[Sequence[str]]
    name: str
    team: str
    image: str
    nodes: int
    gpus: float
    gpus_per_node: float
    accelerator: str | Sequence[str]
    cpus_per_node: float
    memory_gib_per_node: float
    time_limit: str | float
    priority: int
    preemptible: bool
    elastic: Mapping[str, int]
    array: int | str
    after: Sequence[str]
    after_any: Sequence[str]
    singleton: bool
    env: Mapping[str, str]
    workdir: str
    checkpoint: Mapping[str, str | float]
    grace: str | float
    silent_limit: str | float
    idle_after: str | float
    kind: str
    off_peak: bool
    within: str
    how: str
    needs: Sequence[str]
    avoids: Sequence[str]
    data: Sequence[str]
    slurm_variables: bool
    allow_pending: bool
    origin: Mapping[str, Any]


class MoreKeys(TypedDict, total=False):
    """Keys that a caller may set beside those of a job file."""

    allow_pending: bool


class Call(Struct, Generic[Answer], frozen=True, kw_only=True):
    """One request, and the type of its response."""

    method: str
    path: str
    answer: type[Answer]
    params: dict[str, str] = {}
    body: bytes | None = None
    key: str = ""
    """The idempotency key: a request repeated with it is carried out once."""

    @property
    def is_safe(self) -> bool:
        """Whether it is safe to send twice."""
        return self.method == "GET" or bool(self.key)

    @property
    def changes(self) -> bool:
        """Whether it changes something, which may have happened if the response is lost."""
        return self.method != "GET"

    def read(self, content: bytes, url: str) -> Answer:
        """Return the response as a value."""
        try:
            return msgspec.json.decode(content, type=self.answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise not_a_control_plane(url, str(error)) from None


def get(path: str, answer: type[Answer], **params: str | float | None) -> Call[Answer]:
    """Return a request that only reads; parameters that are None are left out."""
    return Call(method="GET", path=API + path, answer=answer, params=_as_strings(params))


def post(
    path: str,
    answer: type[Answer],
    body: Mapping[str, Any] | Struct | None = None,
    key: str = "",
    **params: str | float | None,
) -> Call[Answer]:
    """Return a request that changes something, with a JSON body if there is one."""
    return Call(
        method="POST",
        path=API + path,
        answer=answer,
        params=_as_strings(params),
        body=None if body is None else msgspec.json.encode(body),
        key=key,
    )


def delete(path: str, answer: type[Answer], **params: str | float | None) -> Call[Answer]:
    """Return a request that deletes something."""
    return Call(method="DELETE", path=API + path, answer=answer, params=_as_strings(params))


def new_key() -> str:
    """Return a new random key."""
    return secrets.token_urlsafe(18)


def path_quoted(name: str) -> str:
    """Return a name quoted for use in a path."""
    return quote(name, safe="")


def _as_strings(params: Mapping[str, str | float | None]) -> dict[str, str]:
    return {key: _as_string(value) for key, value in params.items() if value is not None}


def _as_string(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
