"""What a user calls a job: its id, its number, its name, or as Slurm writes a member of an array.

The id is tried first. A number alone is looked up by the control plane, a name among the newest
jobs; `sweep-7_3` and `7_3` mean `sweep-7[3]`. What was meant is said.
"""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import TypeVar

from tenfold.cli.output import print_note
from tenfold.client.client import Client
from tenfold.model.api.jobs import PAGE_MAX, Job
from tenfold.model.errors import InputError, TenfoldError

Answer = TypeVar("Answer")
UNKNOWN = "no-such-job"
_MEMBER = re.compile(r"(.+)(?:_([0-9]+)|\[([0-9]+)\])", re.ASCII)


def with_job(
    client: Client, text: str, call: Callable[[str], Answer], *, active: bool = False
) -> Answer:
    """Return the answer of a call about a job that may be named by its number or its name.

    With `active`, a name means jobs that have not ended, and must mean a single one.
    """
    try:
        return call(text)
    except TenfoldError as error:
        if error.code != UNKNOWN:
            raise
        found = job_id_of(client, text, active=active)
        if found is None:
            raise _unknown(client, text, error) from None
    return call(found)


def id_of(client: Client, text: str) -> str:
    """Return the id of the job that an id, a number or a name means; raise if there is none."""
    return with_job(client, text, lambda name: client.job(name, attempts=1).id)


def job_id_of(client: Client, text: str, *, active: bool = False) -> str | None:
    """Return the id of the job that a number or a name means; None if there is none."""
    return _by_number_or_name(client, text, active=active) or _member_of(client, text)


def _member_of(client: Client, text: str) -> str | None:
    """Return the id of the member that `7_3`, `sweep-7_3` or `7[3]` means."""
    found = _MEMBER.fullmatch(text)
    if found is None:
        return None
    base = _known(client, found[1]) or _by_number_or_name(
        client, found[1], active=False, array=True
    )
    job_id = base and _known(client, f"{base}[{int(found[2] or found[3])}]")
    if job_id:
        print_note(f"`{text}` is `{job_id}`")
    return job_id


def _known(client: Client, job_id: str) -> str | None:
    """Return the id of a job or an array; None if there is none."""
    try:
        return client.job(job_id, attempts=1).id
    except TenfoldError as error:
        if error.code != UNKNOWN:
            raise
        return None


def _by_number_or_name(
    client: Client, text: str, *, active: bool, array: bool = False
) -> str | None:
    """Return the job that is meant; with `array`, a name means the newest array of that name."""
    if text.isascii() and text.isdecimal():
        job_id = _known(client, text)
        if job_id:
            print_note(f"`{text}` is `{job_id}`")
            return job_id
    named = [job for job in _newest(client) if job.name == text]
    if array:
        # The rerun of a member has the name of its array.
        named = [job for job in named if array_of(job) != job.id] or named
    if active:
        # Of jobs that have ended, the newest: the answer says how it ended.
        named = [job for job in named if not job.is_over] or named[:1]
    ids = list(dict.fromkeys(array_of(job) for job in named))
    if active and len(ids) > 1:
        raise InputError(
            "ambiguous-name",
            f"{len(ids)} jobs named `{text}` have not ended: {', '.join(ids[:5])}",
            f"name one of them, or use `--name {text}` for all",
        )
    if ids:
        newest = f", the newest {'array' if array else 'job'} of that name" * (len(ids) > 1)
        print_note(f"`{text}` is `{ids[0]}`{newest}")
    return ids[0] if ids else None


def array_of(job: Job) -> str:
    """Return the array of a job, or the job itself."""
    return job.id.rpartition("[")[0] or job.id


def _newest(client: Client) -> tuple[Job, ...]:
    return client.page(limit=PAGE_MAX).jobs


def _unknown(client: Client, text: str, error: TenfoldError) -> TenfoldError:
    known = dict.fromkeys(name for job in _newest(client) for name in (array_of(job), job.name))
    near = get_close_matches(text, list(known), 1, 0.75)
    hint = f"did you mean `{near[0]}`?" if near else error.hint
    return InputError(error.code, error.message, hint)
