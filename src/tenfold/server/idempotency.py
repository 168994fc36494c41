"""Requests that come again under their key are answered as the first time, and admit nothing.

The key is written with the first job that it admitted, in the same commit, so it is known after
a kill exactly where the jobs are.
"""

from typing import Annotated

from litestar.params import HeaderParameter

from tenfold.journal.store import Store
from tenfold.journal.submit_keys import find_key
from tenfold.live.inbox import Answer
from tenfold.live.keys import match_key
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import SubmitKey, names_of
from tenfold.model.reason import Reason
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import refusal
from tenfold.server.submissions import SubmissionRequest, digest_of

IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-IdempotencyKey",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Names the request for a day: sent again under it, it admits nothing twice.",
    ),
]


def submit_key(given: str | None, body: bytes, token: Token) -> SubmitKey | None:
    """Return the key of a request, which belongs to the team that asks."""
    if given is None:
        return None
    return SubmitKey(TeamId(token.team), given, digest_of(body))


def previous_answer(store: Store, key: SubmitKey, request: SubmissionRequest) -> Answer | None:
    """Return what a request was answered the first time; None where this is the first time.

    Raise where something else was request for under its key. It reads the journal.
    """
    row = find_key(store, key.team, key.key)
    if row is None:
        return None
    found = match_key(key, row.digest, row.number)
    if isinstance(found, Reason):
        raise refusal(found)
    return Answer(names_of(request.submissions, found), again=True)
