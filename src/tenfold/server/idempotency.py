"""A request repeated with the same idempotency key gets the first response and submits nothing.

The key is written in the same commit as the first job that it submitted, so after a crash it is
known exactly when the jobs are.
"""

from typing import Annotated

from litestar.params import HeaderParameter

from tenfold.journal.read import find_key
from tenfold.journal.store import Store
from tenfold.live.inbox import Answer
from tenfold.live.keys import match_key
from tenfold.model.ids import TeamId
from tenfold.model.job.submission import SubmitKey, names_of
from tenfold.model.reason import Reason
from tenfold.model.strings import KEY
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import refusal
from tenfold.server.submissions import SubmissionRequest, digest_of

IdempotencyKey = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=KEY,
        description="Key for safe retries: a repeat within a day submits nothing.",
    ),
]


def submit_key(given: str | None, body: bytes, token: Token) -> SubmitKey | None:
    """Return the key of a request; it belongs to the caller's team."""
    if given is None:
        return None
    return SubmitKey(TeamId(token.team), given, digest_of(body))


def previous_answer(store: Store, key: SubmitKey, request: SubmissionRequest) -> Answer | None:
    """Return the first response to a request; None if this is the first.

    Raise if the key was used for a different request. Reads the journal.
    """
    row = find_key(store, key.team, key.key)
    if row is None:
        return None
    found = match_key(key, row.digest, row.number)
    if isinstance(found, Reason):
        raise refusal(found)
    return Answer(names_of(request.submissions, found), again=True)
