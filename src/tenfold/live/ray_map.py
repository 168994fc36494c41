"""Map a function over tasks on a Ray cluster: the only module that imports Ray.

The cluster's nodes need Tenfold installed, and files at the same paths. For a cluster with
authentication, set RAY_AUTH_TOKEN, as for Ray's own tools.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from socket import create_connection
from typing import Any, Protocol, TypeVar, cast

from tenfold.model.errors import InputError, Unreachable

T = TypeVar("T")
R = TypeVar("R")

KNOCK_TIMEOUT_S = 10.0


class _Remote(Protocol):
    def remote(self, task: object) -> object: ...


class _Ray(Protocol):
    """The part of Ray in use."""

    def init(self, address: str, **options: object) -> object: ...
    def remote(self, function: Callable[[Any], Any]) -> _Remote: ...
    def wait(
        self, references: list[object], *, num_returns: int
    ) -> tuple[list[object], list[object]]: ...
    def get(self, reference: object) -> Any: ...
    def shutdown(self) -> None: ...


def ray_map(
    address: str,
    work: Callable[[T], R],
    tasks: Sequence[T],
    *,
    lost: Callable[[T, str], R],
    done: Callable[[int], None],
) -> list[R]:
    """Return the result of `work` for each task, in order; `lost` handles tasks that Ray lost."""
    ray = _connected(address)
    try:
        remote = ray.remote(work)
        places = {remote.remote(task): place for place, task in enumerate(tasks)}
        results: dict[int, R] = {}
        waiting = list(places)
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1)
            for reference in ready:
                place = places[reference]
                try:
                    results[place] = cast("R", ray.get(reference))
                except Exception as error:
                    results[place] = lost(tasks[place], _first_line(error))
                done(len(results))
        return [results[place] for place in range(len(tasks))]
    finally:
        ray.shutdown()


def _connected(address: str) -> _Ray:
    try:
        ray = cast("_Ray", import_module("ray"))
    except ModuleNotFoundError:
        raise InputError(
            "ray-not-installed",
            "Ray is not installed",
            "run `pip install 'tenfold[ray]'`, or drop --ray to use local processes",
        ) from None
    try:
        _knock(address)
        ray.init(address, logging_level="ERROR", log_to_driver=False)
    except Exception as error:
        raise Unreachable(
            "ray-unreachable",
            f"cannot reach a Ray cluster at `{address}`: {_first_line(error)}",
            "check the address with `ray status`, and RAY_AUTH_TOKEN if it needs a token",
        ) from None
    return ray


def _knock(address: str) -> None:
    """Fail immediately if nothing listens: Ray itself retries for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        create_connection((host.strip("[]"), int(port)), KNOCK_TIMEOUT_S).close()


def _first_line(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
