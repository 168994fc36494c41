"""`tenfold.AsyncClient`: submit, inspect and wait for jobs in an event loop."""

from typing import Self

from tenfold.client.endpoint import find_endpoint
from tenfold.client.operations import Operations
from tenfold.client.retries import TIMEOUT_S, CurrentEndpoint


class AsyncClient(Operations):
    """A connection to a control plane; close it or use `async with`.

    Without arguments it connects to `TENFOLD_URL` with `TENFOLD_TOKEN`, or to the control plane
    that `tenfold up` started on this machine.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        from tenfold.client.connections import AsyncTransport  # noqa: PLC0415

        current = CurrentEndpoint(find_endpoint(url, token))
        super().__init__(current, AsyncTransport(current.endpoint, timeout_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
