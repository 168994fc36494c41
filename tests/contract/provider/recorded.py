"""Cloud APIs as recorded: answers in the documented shape, written by hand, without a network.

Each remembers what was launched, so that a listing after a launch shows it as the real one does.
"""

from collections.abc import Mapping

import msgspec

from tenfold.live.providers.http import Response

ROOM = 4
"""Instances that the zone with capacity has."""


def _answer(status: int, value: object) -> Response:
    return Response(status, b"" if value is None else msgspec.json.encode(value))


class RecordedLambda:
    """The routes of Lambda Cloud that are used."""

    def __init__(self) -> None:
        self.running: dict[str, str] = {"theirs": "someone-else"}
        self.sent: list[tuple[str, str]] = []

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        path = url.removeprefix("https://cloud.lambda.ai/api/v1")
        self.sent.append((method, path))
        assert headers["Authorization"] == "Bearer key"
        request = {} if body is None else msgspec.json.decode(body, type=dict)
        if (method, path) == ("GET", "/instances"):
            return _answer(200, {"data": [_lambda_row(*one) for one in self.running.items()]})
        if (method, path) == ("POST", "/instance-operations/launch"):
            return self._launch(request)
        if (method, path) == ("POST", "/instance-operations/terminate"):
            gone = [one for one in request["instance_ids"] if self.running.pop(one, None)]
            rows = [{**_lambda_row(one, "tenfold-burst"), "status": "terminating"} for one in gone]
            return _answer(200, {"data": {"terminated_instances": rows}})
        raise AssertionError(f"{method} {path} was never recorded")

    def _launch(self, request: dict[str, object]) -> Response:
        quantity = request["quantity"]
        assert isinstance(quantity, int)
        if request["region_name"] != "zone-1" or quantity > ROOM:
            return _answer(
                400,
                {
                    "error": {
                        "code": "instance-operations/launch/insufficient-capacity",
                        "message": "Not enough capacity to fulfill launch request.",
                        "suggestion": "Choose an instance type with more availability, "
                        "or try again later.",
                    }
                },
            )
        ids = [f"0920582c7ff041399e34823a0be6254{at}" for at in range(quantity)]
        self.running |= dict.fromkeys(ids, "tenfold-burst")
        return _answer(200, {"data": {"instance_ids": ids}})


def _lambda_row(name: str, owner: str) -> dict[str, object]:
    return {
        "id": name,
        "name": owner,
        "ip": "10.10.10.1",
        "status": "booting",
        "ssh_key_names": ["laptop"],
        "file_system_names": [],
        "region": {"name": "zone-1", "description": "Austin, Texas"},
        "instance_type": {
            "name": "gpu_8x_h100_sxm5",
            "description": "8x H100 (80 GB SXM5)",
            "price_cents_per_hour": 2392,
            "specs": {"vcpus": 208, "memory_gib": 1800, "storage_gib": 24780, "gpus": 8},
        },
    }


class RecordedRunPod:
    """The routes of RunPod that are used."""

    def __init__(self) -> None:
        self.running: dict[str, str] = {"theirs": "someone-else"}
        self.sent: list[tuple[str, str]] = []

    def __call__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        path = url.removeprefix("https://rest.runpod.io/v1")
        self.sent.append((method, path))
        assert headers["Authorization"] == "Bearer key"
        if method == "GET" and path.startswith("/pods"):
            return _answer(200, [_pod(*one) for one in self.running.items()])
        if (method, path) == ("POST", "/pods"):
            assert body is not None
            return self._create(msgspec.json.decode(body, type=dict))
        if method == "DELETE":
            found = self.running.pop(path.removeprefix("/pods/"), None)
            return _answer(204, None) if found else _answer(404, {"error": "pod not found"})
        raise AssertionError(f"{method} {path} was never recorded")

    def _create(self, request: dict[str, object]) -> Response:
        if request["dataCenterIds"] != ["zone-1"] or len(self.running) > ROOM:
            said = "There are no longer any instances available with the requested specifications."
            return _answer(500, {"error": said, "status": 500})
        name = f"xedezhzb9la3y{len(self.running)}"
        self.running[name] = str(request["name"])
        return _answer(201, _pod(name, self.running[name]))


def _pod(name: str, owner: str) -> dict[str, object]:
    return {
        "id": name,
        "name": owner,
        "desiredStatus": "RUNNING",
        "costPerHr": "23.92",
        "image": "runpod/pytorch:2.1.0-py3.10-cuda11.8.0-devel-ubuntu22.04",
        "interruptible": False,
        "publicIp": None,
        "gpu": {"id": "NVIDIA H100 80GB HBM3", "count": 8},
        "machine": {"dataCenterId": "zone-1", "gpuTypeId": "NVIDIA H100 80GB HBM3"},
    }
