"""Store proposals to expand a fleet: one JSON line each, chained by hashes.

A proposal is never changed. Each line has the hash of the line before, so a line that was edited
or removed shows when the file is read.
"""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from tenfold.model.errors import InputError


class Proposal(Struct, frozen=True, kw_only=True):
    """A proposal that a trigger opened."""

    id: str
    """Made from the rule and the day, so that the same firing is stored once."""
    rule: str
    kind: str
    day: str
    sentence: str
    value: float
    above: float
    evidence: str
    status: str = "open"


class _Line(Struct, frozen=True, kw_only=True):
    proposal: Proposal
    previous: str
    hash: str


def read_proposals(path: Path) -> list[Proposal]:
    """Return all proposals, oldest first; raise if a line does not follow from the one before."""
    return [line.proposal for line in _lines(path)]


def add_proposals(path: Path, found: Sequence[Proposal]) -> list[Proposal]:
    """Append proposals that are not stored yet, and return those."""
    lines = _lines(path)
    known = {line.proposal.id: True for line in lines}
    previous = lines[-1].hash if lines else ""
    # As they will be read back: a whole number is written differently from a float.
    same = [msgspec.convert(msgspec.to_builtins(one), Proposal) for one in found]
    new = [one for one in same if one.id not in known]
    with path.open("ab") as stream:
        for proposal in new:
            digest = _hash(proposal, previous)
            line = _Line(proposal=proposal, previous=previous, hash=digest)
            stream.write(msgspec.json.encode(line) + b"\n")
            previous = digest
    return new


def _lines(path: Path) -> list[_Line]:
    if not path.exists():
        return []
    previous, lines = "", list[_Line]()
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            line = msgspec.json.decode(text, type=_Line)
        except (msgspec.DecodeError, RecursionError, ValueError):
            raise _broken(path, number) from None
        if line.previous != previous or line.hash != _hash(line.proposal, previous):
            raise _broken(path, number)
        previous = line.hash
        lines.append(line)
    return lines


def _hash(proposal: Proposal, previous: str) -> str:
    return sha256(previous.encode() + msgspec.json.encode(proposal)).hexdigest()


def _broken(path: Path, number: int) -> InputError:
    return InputError(
        "broken-chain",
        f"line {number} of `{path}` was changed or does not follow from the line before",
        "restore the file from a backup, or start another one",
        file=str(path),
        line=number,
    )
