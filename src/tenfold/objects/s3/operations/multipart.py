"""Multipart uploads: parts are blobs, and a complete object is the list of them."""

import hashlib
import itertools

from msgspec import Struct, structs

from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.catalog.records import Bucket, ObjectRecord, Part, Upload
from tenfold.objects.catalog.uploads import (
    abort_upload,
    complete_upload,
    find_completed,
    find_upload,
    list_parts,
    put_part,
    start_upload,
)
from tenfold.objects.s3.access import WRITE, require_bucket
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.checksums import (
    ALGORITHMS,
    COMPOSITE,
    FULL_OBJECT,
    algorithm_of,
    composite,
    full_object,
    header_of,
    is_linear,
)
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.headers import new_version, refuse_unsupported
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.http.body import Readable
from tenfold.objects.s3.ingest import Expected, describe, expected_of, receive, write_manifest
from tenfold.objects.s3.operations.buckets import XML, owner_node
from tenfold.objects.s3.operations.writing import check_room, condition_of, draft_of
from tenfold.objects.s3.times import iso
from tenfold.objects.s3.xml import boolean, document, maybe, node, read_xml, tag

PARTS_PAGE_MAX = 1_000


async def create_upload(call: Call) -> Answer:
    """Start an upload."""
    bucket = require_bucket(call, WRITE)
    draft = draft_of(call, bucket)
    algorithm = algorithm_of(call.headers.get("x-amz-checksum-algorithm", ""))
    kind = _checksum_type(call, algorithm)
    upload = Upload(
        id=call.deps.new_id(),
        bucket=bucket.id,
        started_ms=call.now_ms,
        record=draft,
        checksum_algorithm=algorithm,
        checksum_type=kind,
    )
    await call.deps.catalog.write(lambda c: start_upload(c, upload))
    headers = dict(XML)
    if algorithm:
        headers |= {"x-amz-checksum-algorithm": algorithm, "x-amz-checksum-type": kind}
    body = document(
        "InitiateMultipartUploadResult",
        [tag("Bucket", bucket.name), tag("Key", call.key), tag("UploadId", upload.id)],
    )
    return Answer(200, headers, body)


def _checksum_type(call: Call, algorithm: str) -> str:
    kind = call.headers.get("x-amz-checksum-type", "").upper()
    if kind not in ("", FULL_OBJECT, COMPOSITE) or (kind and not algorithm):
        raise S3Error("InvalidRequest", "The checksum type is unknown.")
    if algorithm == "CRC64NVME":
        if kind == COMPOSITE:
            raise S3Error("InvalidRequest", "CRC64NVME is a checksum of full objects only.")
        return FULL_OBJECT
    if kind == FULL_OBJECT and not is_linear(algorithm):
        raise S3Error("InvalidRequest", f"{algorithm} is a checksum of parts only.")
    return (kind or COMPOSITE) if algorithm else ""


async def upload_part(call: Call) -> Answer:
    """Store one part; a part that is sent again replaces the one before."""
    bucket = require_bucket(call, WRITE)
    refuse_unsupported(call)
    upload, number = require_upload(call, bucket), part_number(call)
    expected = expected_of(call, call.deps.settings.object_bytes_max)
    check_room(call, bucket, expected.size_bytes or 0)
    part = await store_part(call, upload, number, call.payload, expected)
    headers = {"etag": f'"{part.etag}"'}
    algorithm = expected.algorithm or upload.checksum_algorithm
    if part.checksum:
        headers[header_of(algorithm)] = part.checksum
    return Answer(200, headers)


async def store_part(
    call: Call, upload: Upload, number: int, payload: Readable, expected: Expected
) -> Part:
    """Write a part to a blob of its own and record it."""
    blobs = call.deps.blobs
    wanted = upload.checksum_algorithm
    if wanted and expected.algorithm not in ("", wanted):
        raise S3Error(
            "InvalidRequest", f"The upload has {wanted} checksums, not {expected.algorithm}."
        )
    if wanted and not expected.algorithm:
        expected = structs.replace(expected, algorithm=wanted)
    tier = call.deps.settings.tiers[upload.record.storage_class]
    writer = blobs.create(tier, expected.size_bytes)
    try:
        received = await receive(payload, writer, expected)
    except BaseException:
        await writer.abort()
        raise
    record = structs.replace(upload.record, size_bytes=received.size_bytes, etag=received.md5)
    ref = await writer.commit(describe(call.bucket, record, upload.id))
    part = Part(
        number, received.size_bytes, received.md5, ref, received.checksum, call.deps.now_ms()
    )
    try:
        quota = call.quota()
        await call.deps.catalog.write(
            lambda c: put_part(c, upload.id, part, part.modified_ms, quota)
        )
    except Exception:
        await blobs.delete(ref)
        raise
    return part


def require_upload(call: Call, bucket: Bucket) -> Upload:
    """Return the upload that a request names."""
    found = find_upload(
        call.deps.catalog.reader, bucket.id, call.key, call.query.get("uploadId", "")
    )
    if found is None:
        raise S3Error("NoSuchUpload")
    return found


def part_number(call: Call) -> int:
    """Return the number of the part that a request names."""
    most = call.deps.settings.parts_max
    number = call.number("partNumber", 0, most + 1)
    if not 1 <= number <= most:
        raise S3Error("InvalidArgument", f"The part number must be between 1 and {most}.")
    return number


class _Wish(Struct, frozen=True):
    """A part as the client lists it on completion."""

    number: int
    etag: str
    checksums: dict[str, str]


async def complete(call: Call) -> Answer:
    """Make an object of the parts that the client lists."""
    bucket = require_bucket(call, WRITE)
    upload_id = call.query.get("uploadId", "")
    wishes = _wishes(await call.document())
    reader = call.deps.catalog.reader
    upload = find_upload(reader, bucket.id, call.key, upload_id)
    if upload is None:
        # A client whose answer was lost repeats its request.
        done = find_completed(reader, bucket.id, call.key, upload_id)
        if done is None:
            raise S3Error("NoSuchUpload")
        return _completed(call, bucket, done[0], done[1], "")
    stored = {part.number: part for part in list_parts(reader, upload.id)}
    parts = tuple(_chosen(wish, stored, upload.checksum_algorithm) for wish in wishes)
    _check_sizes(call, parts)
    record = _object(call, bucket, upload, parts)
    manifest = await write_manifest(call, record)
    record = structs.replace(record, manifest=manifest)
    await _commit(call, upload, record, manifest)
    algorithm = upload.checksum_algorithm
    checksum = ""
    if algorithm:
        checksum = tag(f"Checksum{algorithm}", record.checksums[algorithm]) + tag(
            "ChecksumType", record.checksum_type
        )
    return _completed(call, bucket, record.version, record.etag, checksum)


async def _commit(call: Call, upload: Upload, record: ObjectRecord, manifest: BlobRef) -> None:
    condition = condition_of(call)
    try:
        await call.deps.catalog.write(
            lambda c: complete_upload(c, upload, record, condition, call.quota())
        )
    except Exception:
        await call.deps.blobs.delete(manifest)
        raise


def _object(call: Call, bucket: Bucket, upload: Upload, parts: tuple[Part, ...]) -> ObjectRecord:
    digests = b"".join(bytes.fromhex(part.etag) for part in parts)
    md5 = hashlib.md5(digests, usedforsecurity=False).hexdigest()
    record = structs.replace(
        upload.record,
        # Versioning may have changed since the upload began.
        version=new_version(call, bucket),
        size_bytes=sum(part.size_bytes for part in parts),
        etag=f"{md5}-{len(parts)}",
        modified_ms=call.deps.now_ms(),
        parts=parts,
        is_multipart=True,
    )
    algorithm = upload.checksum_algorithm
    if not algorithm:
        return record
    if upload.checksum_type == FULL_OBJECT:
        value = full_object(algorithm, [(part.checksum, part.size_bytes) for part in parts])
    else:
        value = composite(algorithm, [part.checksum for part in parts])
    claim = call.headers.get(header_of(algorithm), "")
    if claim and claim.partition("-")[0] != value.partition("-")[0]:
        raise S3Error("BadDigest", f"The {algorithm} does not match the object.")
    return structs.replace(record, checksums={algorithm: value}, checksum_type=upload.checksum_type)


def _wishes(data: bytes) -> list[_Wish]:
    root = read_xml(data, "CompleteMultipartUpload")
    wishes: list[_Wish] = []
    for element in root.all("Part"):
        number = element.value("PartNumber")
        if not number.isdigit() or len(number) > 6:
            raise S3Error("MalformedXML")
        checksums = {
            name: element.value(f"Checksum{name}")
            for name in ALGORITHMS
            if element.has(f"Checksum{name}")
        }
        wishes.append(_Wish(int(number), element.value("ETag").strip('"'), checksums))
    if not wishes:
        raise S3Error("MalformedXML", "An upload is completed with at least one part.")
    numbers = [wish.number for wish in wishes]
    if any(later <= earlier for earlier, later in itertools.pairwise(numbers)):
        raise S3Error("InvalidPartOrder")
    return wishes


def _chosen(wish: _Wish, stored: dict[int, Part], algorithm: str) -> Part:
    part = stored.get(wish.number)
    if part is None or part.etag != wish.etag:
        raise S3Error("InvalidPart")
    claim = wish.checksums.get(algorithm, "")
    if claim and claim != part.checksum:
        raise S3Error("InvalidPart", "The checksum of a part differs.")
    return part


def _check_sizes(call: Call, parts: tuple[Part, ...]) -> None:
    least = call.deps.settings.part_bytes_min
    if any(part.size_bytes < least for part in parts[:-1]):
        raise S3Error("EntityTooSmall")


def _completed(call: Call, bucket: Bucket, version: str, etag: str, checksum: str) -> Answer:
    host = call.headers.get("host", "")
    body = document(
        "CompleteMultipartUploadResult",
        [
            tag("Location", f"http://{host}/{bucket.name}/{call.key}"),
            tag("Bucket", bucket.name),
            tag("Key", call.key),
            tag("ETag", f'"{etag}"'),
            checksum,
        ],
    )
    headers = dict(XML)
    if bucket.is_versioned:
        headers["x-amz-version-id"] = version
    return Answer(200, headers, body)


async def abort(call: Call) -> Answer:
    """Drop an upload with its parts."""
    bucket = require_bucket(call, WRITE)
    upload = call.query.get("uploadId", "")
    now_ms = call.deps.now_ms()
    await call.deps.catalog.write(lambda c: abort_upload(c, bucket.id, call.key, upload, now_ms))
    return Answer(204)


async def list_all_parts(call: Call) -> Answer:
    """List the parts of an upload."""
    bucket = require_bucket(call, WRITE)
    upload = require_upload(call, bucket)
    after = call.number("part-number-marker", 0, 1 << 30)
    limit = call.number("max-parts", PARTS_PAGE_MAX, PARTS_PAGE_MAX)
    found = list_parts(call.deps.catalog.reader, upload.id, after, limit + 1)
    shown = found[:limit]
    algorithm = upload.checksum_algorithm
    body = document(
        "ListPartsResult",
        [
            tag("Bucket", bucket.name),
            tag("Key", call.key),
            tag("UploadId", upload.id),
            owner_node(call, upload.record.owner, "Initiator"),
            owner_node(call, upload.record.owner),
            tag("StorageClass", upload.record.storage_class),
            tag("PartNumberMarker", after),
            maybe("NextPartNumberMarker", shown[-1].number if shown else ""),
            tag("MaxParts", limit),
            tag("IsTruncated", boolean(len(found) > limit)),
            maybe("ChecksumAlgorithm", algorithm),
            maybe("ChecksumType", upload.checksum_type),
            *(_part_node(part, algorithm) for part in shown),
        ],
    )
    return Answer(200, dict(XML), body)


def _part_node(part: Part, algorithm: str) -> str:
    return node(
        "Part",
        tag("PartNumber", part.number),
        tag("LastModified", iso(part.modified_ms)),
        tag("ETag", f'"{part.etag}"'),
        tag("Size", part.size_bytes),
        maybe(f"Checksum{algorithm}", part.checksum if algorithm else ""),
    )
