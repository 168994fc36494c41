"""Hide who is who: users and accounts become short hashes, job names go away.

The same name has the same hash within one report; the hash is keyed with a random secret that is
not kept, so names cannot be guessed from it.
"""

from collections.abc import Sequence
from hashlib import blake2b
from secrets import token_bytes

from msgspec.structs import replace

from tenfold.model.ids import TeamId
from tenfold.model.job.recorded import RecordedJob
from tenfold.study.assess.evidence import Evidence

HASH_BYTES = 4


class Names:
    """Hashes of names under one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, name: str, kind: str) -> str:
        """Return the hash of a name; no name stays none."""
        if not name:
            return ""
        digest = blake2b(f"{kind} {name}".encode(), digest_size=HASH_BYTES, key=self._secret)
        return f"{kind}-{digest.hexdigest()}"


def anonymous(evidence: Evidence, secret: bytes | None = None) -> Evidence:
    """Return the evidence without names of users, accounts, jobs and the cluster."""
    names = Names(token_bytes(16) if secret is None else secret)

    def hide(jobs: Sequence[RecordedJob]) -> tuple[RecordedJob, ...]:
        return tuple(
            replace(
                job,
                user=names.of(job.user, "user"),
                account=names.of(job.account, "account"),
                name="",
            )
            for job in jobs
        )

    return replace(
        evidence,
        source=evidence.source if evidence.source == "live" else "saved output",
        cluster=names.of(evidence.cluster, "cluster"),
        records=hide(evidence.records),
        queue=hide(evidence.queue),
        never=hide(evidence.never),
        work=tuple(
            replace(
                job,
                team=TeamId(names.of(str(job.team), "account")),
                user=names.of(job.user, "user"),
            )
            for job in evidence.work
        ),
    )
