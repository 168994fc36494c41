"""Every call of the HTTP API as a value: what is sent, and what comes back.

Both clients carry out the same values, so that they cannot come to differ.
"""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Required, TypedDict, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenfold.client.problems import stranger
from tenfold.model.api.fleet import FleetNow, Idle, JournalEvent
from tenfold.model.api.jobs import Batch, DryRun, Job, JobPage, Submitted, Taken, Why
from tenfold.model.api.nodes import Marked, MarkNodes, Nodes, NodesMarked, NodeVerb
from tenfold.model.api.tokens import DAYS, CreateToken, NewToken, RoleName, Token, Tokens

API = "/api/v1"
Answer = TypeVar("Answer")
Params = dict[str, str]


class JobKeys(TypedDict, total=False):
    """The keys of a job file; everything but the command has a default."""

    command: Required[Sequence[str]]
    name: str
    team: str
    image: str
    nodes: int
    gpus_per_node: float
    accelerator: str | Sequence[str]
    cpus_per_node: float
    memory_gib_per_node: float
    time_limit: str | float
    priority: int
    preemptible: bool
    elastic: Mapping[str, int]
    array: int
    after: Sequence[str]
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


class Call(Struct, Generic[Answer], frozen=True, kw_only=True):
    """One request, and the type of its answer."""

    method: str
    path: str
    answer: type[Answer]
    params: Params = {}
    body: bytes | None = None
    key: str = ""
    """Names the request, so that it can come twice and be taken once."""

    @property
    def is_safe(self) -> bool:
        """Whether asking twice does no more than asking once."""
        return self.method == "GET" or bool(self.key)

    @property
    def changes(self) -> bool:
        """Whether it asks for something to be done, which may have been if no answer came."""
        return self.method != "GET"

    def read(self, content: bytes, url: str) -> Answer:
        """Return the answer as a value."""
        try:
            return msgspec.json.decode(content, type=self.answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise stranger(url, str(error)) from None


def new_key() -> str:
    """Return a key that no other request has."""
    return secrets.token_urlsafe(18)


def submit(job: Mapping[str, Any], key: str | None = None) -> Call[Submitted]:
    """Hand in one job or array, under a key of its own if none is given."""
    return _post("/jobs", Submitted, job, key or new_key())


def submit_many(jobs: Sequence[Mapping[str, Any]], key: str | None = None) -> Call[Batch]:
    """Hand in several, all of them or none, under a key of its own if none is given."""
    return _post("/jobs", Batch, {"jobs": jobs}, key or new_key())


def dry_run(job: Mapping[str, Any], *, seek: str, eta: bool) -> Call[DryRun]:
    """Ask what would become of a job; nothing is handed in."""
    asked = _post("/jobs/dry-run", DryRun, job)
    return replace(asked, params={"seek": seek, "eta": _word(eta)})


def show(job_id: str, *, eta: bool) -> Call[Job]:
    """Look at one job."""
    return _get(_job(job_id), Job, eta=eta or None)


def page(**bounds: str | int | None) -> Call[JobPage]:
    """Look at a page of jobs, the newest first: `team, state, since, array, before, limit`."""
    return _get("/jobs", JobPage, **bounds)


def cancel(job_id: str) -> Call[Taken]:
    """Take back a job that waits, or end one that runs."""
    return Call(method="DELETE", path=API + _job(job_id), answer=Taken)


def why(job_id: str, *, seek: str, eta: bool) -> Call[Why]:
    """Ask why a job stands where it stands."""
    return _get(f"{_job(job_id)}/why", Why, seek=seek, eta=eta or None)


def idle() -> Call[Idle]:
    """Look at who idles."""
    return _get("/fleet/idle", Idle)


def nodes() -> Call[Nodes]:
    """Look at the nodes."""
    return _get("/nodes", Nodes)


def mark(node_id: str, verb: str, cause: str = "") -> Call[Marked]:
    """Cordon a node, bring it back, or say that it is gone."""
    params = {"cause": cause} if cause else {}
    path = f"/nodes/{quote(node_id, safe='')}/{verb}"
    return Call(method="POST", path=API + path, answer=Marked, params=params)


def mark_nodes(node_ids: Sequence[str], verb: NodeVerb, cause: str = "") -> Call[NodesMarked]:
    """Do one thing to several nodes, to all of them or to none."""
    return _post("/nodes", NodesMarked, MarkNodes(nodes=list(node_ids), verb=verb, cause=cause))


def fleet() -> Call[FleetNow]:
    """Look at the fleet in a few figures."""
    return _get("/fleet", FleetNow)


def who_am_i() -> Call[Token]:
    """Ask whose token this is."""
    return _get("/whoami", Token)


def tokens() -> Call[Tokens]:
    """Look at the tokens."""
    return _get("/tokens", Tokens)


def create_token(name: str, team: str, role: RoleName, days: float | None) -> Call[NewToken]:
    """Make a token."""
    body = CreateToken(name=name, team=team, role=role, days=DAYS if days is None else days)
    return _post("/tokens", NewToken, body)


def revoke_token(token_id: str) -> Call[Token]:
    """End a token."""
    path = f"{API}/tokens/{quote(token_id, safe='')}"
    return Call(method="DELETE", path=path, answer=Token)


def logs(
    job_id: str, *, member: int, attempt: int | None, tail: int | None, follow: bool = False
) -> Call[bytes]:
    """Read what a member wrote."""
    return _get(
        f"{_job(job_id)}/logs",
        bytes,
        member=member,
        attempt=attempt,
        tail=tail,
        follow=follow or None,
    )


def from_byte(call: Call[bytes], offset: int | None) -> Call[bytes]:
    """Return the same look at a log, from a byte on that was not read yet."""
    if offset is None:
        return call
    return replace(call, params={**call.params, "offset": str(offset)})


def events(*, follow: bool) -> Call[JournalEvent]:
    """Read the journal as it is written."""
    return _get("/events", JournalEvent, follow=follow)


def _job(job_id: str) -> str:
    return f"/jobs/{quote(job_id, safe='')}"


def _get(path: str, answer: type[Answer], **params: str | float | None) -> Call[Answer]:
    said = {key: _word(value) for key, value in params.items() if value is not None}
    return Call(method="GET", path=API + path, answer=answer, params=said)


def _word(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _post(
    path: str, answer: type[Answer], body: Mapping[str, Any] | Struct, key: str = ""
) -> Call[Answer]:
    content = msgspec.json.encode(body)
    return Call(method="POST", path=API + path, answer=answer, body=content, key=key)
