"""`tenfold.Client`: submit, inspect and wait for jobs from Python.

Every call runs the async client's coroutine to completion: over a blocking transport it never
suspends, and needs no event loop.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, overload

from tenfold.client.endpoint import find_endpoint
from tenfold.client.operations import Operations
from tenfold.client.retries import TIMEOUT_S, CurrentEndpoint

Args = ParamSpec("Args")
Answer = TypeVar("Answer")


class _Connection:
    """The connection that the calls below use."""

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        from tenfold.client.connections import BlockingTransport  # noqa: PLC0415

        current = CurrentEndpoint(find_endpoint(url, token))
        self.operations = Operations(current, BlockingTransport(current.endpoint, timeout_s))


def _run(work: Awaitable[Answer]) -> Answer:
    """Return the result of a coroutine that never suspends."""
    try:
        next(work.__await__())
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    raise AssertionError("a call over a blocking transport must not wait for an event loop")


def _run_each(values: AsyncGenerator[Answer, None]) -> Iterator[Answer]:
    try:
        while True:
            try:
                value = _run(anext(values))
            except StopAsyncIteration:
                return
            yield value
    finally:
        _run(values.aclose())


def _blocking(
    call: Callable[Concatenate[Operations, Args], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[_Connection, Args], Answer]:
    @wraps(call)
    def run(client: _Connection, /, *args: Args.args, **kwargs: Args.kwargs) -> Answer:
        return _run(call(client.operations, *args, **kwargs))

    return run


def _iterating(
    call: Callable[Concatenate[Operations, Args], AsyncGenerator[Answer, None]],
) -> Callable[Concatenate[_Connection, Args], Iterator[Answer]]:
    @wraps(call)
    def run(client: _Connection, /, *args: Args.args, **kwargs: Args.kwargs) -> Iterator[Answer]:
        return _run_each(call(client.operations, *args, **kwargs))

    return run


class Client(_Connection):
    """A connection to a control plane; use it from one thread, and close it or use `with`.

    Without arguments it connects to `TENFOLD_URL` with `TENFOLD_TOKEN`, or to the control plane
    that `tenfold up` started on this machine.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The URL of the control plane."""
        return self.operations.url

    close = _blocking(Operations.close)
    submit = _blocking(Operations.submit)
    submit_file = _blocking(Operations.submit_file)
    submit_many = _blocking(Operations.submit_many)
    dry_run = _blocking(Operations.dry_run)
    job = _blocking(Operations.job)
    page = _blocking(Operations.page)
    jobs = _iterating(Operations.jobs)
    cancel = _blocking(Operations.cancel)
    rerun = _blocking(Operations.rerun)
    release = _blocking(Operations.release)
    why = _blocking(Operations.why)
    wait = _blocking(Operations.wait)
    open_shell = _blocking(Operations.open_shell)
    shell_output = _iterating(Operations.shell_output)
    shell_input = _blocking(Operations.shell_input)
    events = _iterating(Operations.events)
    nodes = _blocking(Operations.nodes)
    cordon = _blocking(Operations.cordon)
    uncordon = _blocking(Operations.uncordon)
    fail = _blocking(Operations.fail)
    test_node = _blocking(Operations.test_node)
    accept_node = _blocking(Operations.accept_node)
    mark_nodes = _blocking(Operations.mark_nodes)
    join_nodes = _blocking(Operations.join_nodes)
    leave_nodes = _blocking(Operations.leave_nodes)
    fleet = _blocking(Operations.fleet)
    control_planes = _blocking(Operations.control_planes)
    idle = _blocking(Operations.idle)
    ready = _blocking(Operations.ready)
    who_am_i = _blocking(Operations.who_am_i)
    tokens = _blocking(Operations.tokens)
    create_token = _blocking(Operations.create_token)
    revoke_token = _blocking(Operations.revoke_token)
    deploy = _blocking(Operations.deploy)
    deploy_file = _blocking(Operations.deploy_file)
    services = _blocking(Operations.services)
    service = _blocking(Operations.service)
    scale_service = _blocking(Operations.scale_service)
    weigh_canary = _blocking(Operations.weigh_canary)
    promote_service = _blocking(Operations.promote_service)
    roll_back_service = _blocking(Operations.roll_back_service)
    remove_service = _blocking(Operations.remove_service)
    models = _blocking(Operations.models)
    model = _blocking(Operations.model)
    model_version = _blocking(Operations.model_version)
    register_model = _blocking(Operations.register_model)
    move_model_alias = _blocking(Operations.move_model_alias)
    stage_model = _blocking(Operations.stage_model)
    remove_model_version = _blocking(Operations.remove_model_version)
    object_store = _blocking(Operations.object_store)
    access_keys = _blocking(Operations.access_keys)
    create_access_key = _blocking(Operations.create_access_key)
    revoke_access_key = _blocking(Operations.revoke_access_key)
    set_storage_quota = _blocking(Operations.set_storage_quota)

    @overload
    def logs(
        self,
        job_id: str,
        *,
        follow: Literal[False] = False,
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
        lines: int | None = None,
    ) -> str: ...

    @overload
    def logs(
        self,
        job_id: str,
        *,
        follow: Literal[True],
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
        lines: int | None = None,
    ) -> Iterator[str]: ...

    def logs(
        self,
        job_id: str,
        *,
        follow: bool = False,
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
        lines: int | None = None,
    ) -> str | Iterator[str]:
        """Return the end of a job's log: `tail` bytes, or `lines` lines, of one member.

        It is the first member of the latest attempt unless others are named. With `follow`, yield
        the log as it is written, attempt after attempt, until the job ends.
        """
        logs = self.operations.logs
        if follow:
            texts = logs(
                job_id, follow=True, member=member, attempt=attempt, tail=tail, lines=lines
            )
            return _run_each(texts)
        return _run(logs(job_id, member=member, attempt=attempt, tail=tail, lines=lines))
