"""The HTTP API of a Ray head: jobs and nodes, with a token."""

from collections.abc import Mapping
from typing import TypeVar

import httpx
import msgspec
from msgspec import Struct

from tenfold.model.errors import Unreachable

T = TypeVar("T")
TIMEOUT_S = 30.0
TOKEN = "RAY_AUTH_TOKEN"


class ApiCost(Struct):
    """What the requests so far have cost."""

    requests: int = 0
    seconds: float = 0.0
    bytes_read: int = 0


class RayJob(Struct, frozen=True):
    """One job of the cluster; those without a submission id are drivers started by hand."""

    status: str
    submission_id: str | None = None
    metadata: dict[str, str] | None = None


class Raylet(Struct, frozen=True, rename="camel"):
    """What Ray runs on a node."""

    node_name: str = ""
    state: str = ""
    resources_total: dict[str, float] = {}


class RayNode(Struct, frozen=True):
    """One node, as its head lists it."""

    ip: str = ""
    hostname: str = ""
    raylet: Raylet = Raylet()

    @property
    def name(self) -> str:
        """Its name: as it was started with, which is its address by default."""
        return self.raylet.node_name or self.ip or self.hostname

    @property
    def is_alive(self) -> bool:
        """Whether it is part of the cluster."""
        return self.raylet.state == "ALIVE"


class _Summary(Struct, frozen=True):
    summary: list[RayNode]


class _Nodes(Struct, frozen=True):
    data: _Summary


class ApiRefused(Exception):
    """The head answered and refused a request."""

    def __init__(self, status: int, text: str) -> None:
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        super().__init__(lines[-1][:200] if lines else f"status {status}")
        self.status = status
        self.text = text


class RayApi:
    """Requests to one head."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(base_url=self._address, headers=headers, timeout=TIMEOUT_S)
        self.cost = ApiCost()

    def jobs(self) -> list[RayJob]:
        """Return every job of the cluster."""
        return _decoded(self._ask("GET", "/api/jobs/"), list[RayJob])

    def nodes(self) -> list[RayNode]:
        """Return every node, alive or dead."""
        answer = _decoded(self._ask("GET", "/nodes?view=summary"), _Nodes)
        return answer.data.summary

    def submit(self, job: Mapping[str, object]) -> None:
        """Submit a job; one of the same submission id is refused."""
        self._ask("POST", "/api/jobs/", job)

    def stop(self, submission_id: str) -> None:
        """Stop a job."""
        self._ask("POST", f"/api/jobs/{submission_id}/stop")

    def close(self) -> None:
        """Disconnect."""
        self._client.close()

    def _ask(self, method: str, path: str, body: object = None) -> bytes:
        try:
            answer = self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise Unreachable(
                "ray-unreachable",
                f"cannot reach a Ray head at `{self._address}`: {error}",
                "check the address of its dashboard, and RAY_AUTH_TOKEN if it needs a token",
            ) from None
        self.cost.requests += 1
        self.cost.seconds += answer.elapsed.total_seconds()
        self.cost.bytes_read += len(answer.content)
        if answer.status_code in (502, 503, 504):
            raise Unreachable(
                "ray-unreachable",
                f"the Ray head at `{self._address}` answers with status {answer.status_code}",
                "wait until it is up",
            )
        if answer.status_code >= 400:
            raise ApiRefused(answer.status_code, answer.text)
        return answer.content


def _decoded(text: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise Unreachable(
            "ray-unreachable",
            f"the answer of the Ray head cannot be read: {error}",
            "check that the address is that of a Ray dashboard",
        ) from None
