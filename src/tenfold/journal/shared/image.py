"""Store what the members of an array have in common once in a snapshot.

Compression alone does not do that: it finds repetitions within 32 KiB, and a request may have more.
JSON has no line breaks, so lines separate the parts: `shared`, the number of texts, the texts, and
the image in pieces, with the number of a text between two of them. An image without shared texts is
plain JSON, as it was before.
"""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from tenfold.fleet.image import FleetImage
from tenfold.journal.shared.members import MemberSharing
from tenfold.model.job.job import Job

SHARED_FROM = 512
"""Bytes of a shape, or of terms, from which they are stored once."""
MARK = b"shared"
_ENCODE = msgspec.json.Encoder().encode
_IMAGE = msgspec.json.Decoder(FleetImage)


def encode_image(image: FleetImage) -> bytes:
    """Return an image as it is stored, before it is compressed."""
    body = _ENCODE(image)
    texts: dict[bytes, int] = {}
    parts: dict[str, list[bytes]] = {}
    lines: list[bytes] = []
    at = 0
    for job in _jobs(image):
        # In the order of the image, so each search goes on where the last one ended.
        for text in _parts(job, parts):
            found = body.find(text, at)
            if found >= 0:
                lines += (body[at:found], b"%d" % texts.setdefault(text, len(texts)))
                at = found + len(text)
    if not texts:
        return body
    return b"\n".join((MARK, b"%d" % len(texts), *texts, *lines, body[at:]))


def decode_image(stored: bytes) -> FleetImage:
    """Return a stored image; members of an array share what they have in common."""
    if not stored.startswith(MARK):
        return _IMAGE.decode(stored)
    _, count, *lines = stored.split(b"\n")
    texts, pieces = lines[: int(count)], lines[int(count) :]
    pieces[1::2] = [texts[int(number)] for number in pieces[1::2]]
    return _shared(_IMAGE.decode(b"".join(pieces)))


def _parts(job: Job, parts: dict[str, list[bytes]]) -> list[bytes]:
    """Return what a job may share with other members of its array, in the order of its fields."""
    if job.terms is None or not job.terms.array:
        return []
    found = parts.get(job.terms.array)
    if found is None:
        both = (_ENCODE(job.shape), _ENCODE(job.terms))
        found = parts[job.terms.array] = [text for text in both if len(text) >= SHARED_FROM]
    return found


def _jobs(image: FleetImage) -> Iterator[Job]:
    """Yield the jobs of an image in the order in which they are encoded."""
    yield from image.pending
    for each in (*image.orders, *image.running, *image.history):
        yield each.job
    yield from image.held


def _shared(image: FleetImage) -> FleetImage:
    job = MemberSharing().job
    return replace(
        image,
        pending=tuple([job(one) for one in image.pending]),
        orders=tuple([replace(one, job=job(one.job)) for one in image.orders]),
        running=tuple([replace(one, job=job(one.job)) for one in image.running]),
        history=tuple([replace(one, job=job(one.job)) for one in image.history]),
        held=tuple([job(one) for one in image.held]),
    )
