"""Tags of buckets and objects."""

from msgspec import structs

from tenfold.objects.catalog.buckets import change_settings
from tenfold.objects.catalog.records import Bucket, BucketSettings, ObjectRecord
from tenfold.objects.s3.access import READ, WRITE, require_object, require_owner
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.headers import TAGS_MAX, check_tags
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.operations.changing import change_object
from tenfold.objects.s3.operations.reading import existing
from tenfold.objects.s3.xml import document, node, read_xml, tag

BUCKET_TAGS_MAX = 50


async def get_bucket_tags(call: Call) -> Answer:
    """Send the tags of a bucket."""
    bucket = require_owner(call)
    if not bucket.settings.tags:
        raise S3Error("NoSuchTagSet")
    return _tagging(bucket.settings.tags, {})


async def put_bucket_tags(call: Call) -> Answer:
    """Replace the tags of a bucket."""
    bucket = require_owner(call)
    tags = _read(await call.document(), BUCKET_TAGS_MAX)
    await _set_bucket_tags(call, bucket, tags)
    return Answer(200)


async def delete_bucket_tags(call: Call) -> Answer:
    """Remove the tags of a bucket."""
    await _set_bucket_tags(call, require_owner(call), {})
    return Answer(204)


async def get_tags(call: Call) -> Answer:
    """Send the tags of an object."""
    bucket, record = _object(call, READ)
    return _tagging(record.tags, version_header(bucket, record))


async def put_tags(call: Call) -> Answer:
    """Replace the tags of an object."""
    bucket, record = _object(call, WRITE)
    tags = _read(await call.document(), TAGS_MAX)
    changed = await change_object(call, record, lambda found: structs.replace(found, tags=tags))
    return Answer(200, version_header(bucket, changed))


async def delete_tags(call: Call) -> Answer:
    """Remove the tags of an object."""
    bucket, record = _object(call, WRITE)
    changed = await change_object(call, record, lambda found: structs.replace(found, tags={}))
    return Answer(204, version_header(bucket, changed))


def version_header(bucket: Bucket, record: ObjectRecord) -> dict[str, str]:
    """Return the header that names a version, where there are versions."""
    return {"x-amz-version-id": record.version} if bucket.is_versioned else {}


def _object(call: Call, permission: str) -> tuple[Bucket, ObjectRecord]:
    bucket = call.bucket
    record = existing(call, bucket, call.key, call.version)
    require_object(call, bucket, record, permission)
    return bucket, record


async def _set_bucket_tags(call: Call, bucket: Bucket, tags: dict[str, str]) -> None:
    def change(settings: BucketSettings) -> BucketSettings:
        return structs.replace(settings, tags=tags)

    await call.deps.catalog.write(lambda c: change_settings(c, bucket.id, change))


def _read(data: bytes, most: int) -> dict[str, str]:
    found = read_xml(data, "Tagging").first("TagSet")
    if found is None:
        raise S3Error("MalformedXML")
    pairs: list[tuple[str, str]] = []
    for element in found.all("Tag"):
        key, value = element.first("Key"), element.first("Value")
        if key is None or value is None:
            raise S3Error("MalformedXML")
        pairs.append((key.text, value.text))
    return check_tags(pairs, most)


def _tagging(tags: dict[str, str], headers: dict[str, str]) -> Answer:
    pairs = [node("Tag", tag("Key", key), tag("Value", tags[key])) for key in sorted(tags)]
    return Answer(200, {**XML, **headers}, document("Tagging", [node("TagSet", *pairs)]))
