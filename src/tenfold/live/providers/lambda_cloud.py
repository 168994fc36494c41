"""Rent instances of Lambda Cloud through its public HTTP API.

A zone is a region. Instances carry a name with a prefix of ours, so that only those are listed
and released.
"""

from collections.abc import Sequence
from typing import cast

import msgspec
from msgspec import Struct

from tenfold.live.providers.http import JsonApi
from tenfold.live.providers.provider import Instance, InstanceState, NoCapacity
from tenfold.model.errors import Unreachable

BASE = "https://cloud.lambda.ai/api/v1"
PREFIX = "tenfold-burst"
NO_CAPACITY = ("insufficient-capacity", "quota-exceeded")
STATES: dict[str, InstanceState] = {
    "booting": "starting",
    "active": "running",
    "unhealthy": "running",
    "terminating": "stopping",
}


class _Region(Struct):
    name: str


class _Instance(Struct):
    id: str
    status: str
    name: str | None = None
    ip: str | None = None
    region: _Region | None = None


class LambdaCloud:
    """Lambda Cloud as a provider."""

    name = "lambda"

    def __init__(self, api: JsonApi, *, instance_type: str, ssh_key: str) -> None:
        self._api = api
        self._instance_type = instance_type
        self._ssh_key = ssh_key

    def rent(self, zone: str, nodes: int) -> tuple[str, ...]:
        """Launch instances in a region."""
        status, answer = self._api.call(
            "POST",
            "/instance-operations/launch",
            {
                "region_name": zone,
                "instance_type_name": self._instance_type,
                "ssh_key_names": [self._ssh_key],
                "quantity": nodes,
                "name": PREFIX,
            },
        )
        if status != 200:
            raise _refused(zone, status, answer)
        data = cast(dict[str, object], answer.get("data", {}))
        ids = cast(list[str], data.get("instance_ids", []))
        if len(ids) != nodes:
            # All or nothing: a gang cannot use a part.
            self.release(ids)
            raise NoCapacity(zone, f"{len(ids)} of {nodes} instances were launched")
        return tuple(ids)

    def instances(self) -> tuple[Instance, ...]:
        """Return our instances that are not terminated."""
        status, answer = self._api.call("GET", "/instances")
        if status != 200:
            raise _refused("", status, answer)
        rows = msgspec.convert(answer.get("data", []), list[_Instance])
        found = [
            Instance(
                id=row.id,
                zone=row.region.name if row.region else "",
                state=STATES[row.status],
                address=row.ip or "",
            )
            for row in rows
            if row.status in STATES and (row.name or "").startswith(PREFIX)
        ]
        return tuple(sorted(found, key=lambda one: one.id))

    def release(self, ids: Sequence[str]) -> None:
        """Terminate those of our instances that are still there."""
        ours = {one.id for one in self.instances() if one.state != "stopping"}
        leaving = [name for name in ids if name in ours]
        if not leaving:
            return
        status, answer = self._api.call(
            "POST", "/instance-operations/terminate", {"instance_ids": leaving}
        )
        if status != 200:
            raise _refused("", status, answer)


def _refused(zone: str, status: int, answer: dict[str, object]) -> Unreachable:
    error = cast(dict[str, object], answer.get("error", {}))
    code, message = str(error.get("code", status)), str(error.get("message", "no message"))
    if any(part in code for part in NO_CAPACITY):
        return NoCapacity(zone, message)
    return Unreachable(
        "provider-answer",
        f"the API answered {status}: {message} ({code})",
        str(error.get("suggestion", "")) or "check the API key and the instance type",
    )
