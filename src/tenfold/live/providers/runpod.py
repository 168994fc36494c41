"""Rent pods of RunPod through its public REST API. A zone is a data centre."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from tenfold.live.providers.http import JsonApi
from tenfold.live.providers.provider import Instance, InstanceState, NoCapacity
from tenfold.model.errors import Unreachable

BASE = "https://rest.runpod.io/v1"
PREFIX = "tenfold-burst"
STATES: dict[str, InstanceState] = {"RUNNING": "running", "EXITED": "stopping"}
NO_CAPACITY = ("no longer any instances", "no instances", "not enough")


class _Machine(Struct, rename={"data_center": "dataCenterId"}):
    data_center: str = ""


class _Pod(Struct, rename={"status": "desiredStatus", "address": "publicIp"}):
    id: str
    name: str = ""
    status: str = ""
    address: str | None = None
    machine: _Machine | None = None


class RunPod:
    """RunPod as a provider."""

    name = "runpod"

    def __init__(self, api: JsonApi, *, gpu_type: str, gpus: int, image: str) -> None:
        self._api = api
        self._gpu_type = gpu_type
        self._gpus = gpus
        self._image = image

    def rent(self, zone: str, nodes: int) -> tuple[str, ...]:
        """Create pods one by one; if one is refused, the others are given back."""
        ids: list[str] = []
        for _ in range(nodes):
            status, answer = self._api.call(
                "POST",
                "/pods",
                {
                    "name": PREFIX,
                    "dataCenterIds": [zone],
                    "gpuTypeIds": [self._gpu_type],
                    "gpuCount": self._gpus,
                    "imageName": self._image,
                },
            )
            if status not in (200, 201):
                self.release(ids)
                raise _refused(zone, status, answer)
            ids.append(str(answer["id"]))
        return tuple(ids)

    def instances(self) -> tuple[Instance, ...]:
        """Return our pods."""
        status, answer = self._api.call("GET", f"/pods?name={PREFIX}")
        if status != 200:
            raise _refused("", status, answer)
        rows = msgspec.convert(answer.get("items", []), list[_Pod])
        found = [
            Instance(
                id=row.id,
                zone=row.machine.data_center if row.machine else "",
                state=_state(row),
                address=row.address or "",
            )
            for row in rows
            if row.name.startswith(PREFIX) and row.status != "TERMINATED"
        ]
        return tuple(sorted(found, key=lambda one: one.id))

    def release(self, ids: Sequence[str]) -> None:
        """Delete pods; one that is gone already is no error."""
        for pod in ids:
            status, answer = self._api.call("DELETE", f"/pods/{pod}")
            if status not in (200, 204, 404):
                raise _refused("", status, answer)


def _state(row: _Pod) -> InstanceState:
    state = STATES.get(row.status, "starting")
    return "starting" if state == "running" and not row.address else state


def _refused(zone: str, status: int, answer: dict[str, object]) -> Unreachable:
    message = str(answer.get("error", answer.get("message", "no message")))
    if any(part in message.casefold() for part in NO_CAPACITY):
        return NoCapacity(zone, message)
    return Unreachable(
        "provider-answer",
        f"the API answered {status}: {message}",
        "check the API key and the GPU type",
    )
