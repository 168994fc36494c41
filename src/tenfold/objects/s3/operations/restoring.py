"""RestoreObject: a readable copy of an archived object, for some days."""

from msgspec import structs

from tenfold.objects.s3.access import WRITE, require_object
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.headers import DAY_MS
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.changing import change_object
from tenfold.objects.s3.operations.reading import existing
from tenfold.objects.s3.xml import read_xml

DAYS_MAX = 3_650


async def restore(call: Call) -> Answer:
    """Let an archived object be read for some days; it stays in its tier, and is read from it."""
    bucket = call.bucket
    record = existing(call, bucket, call.key, call.version)
    require_object(call, bucket, record, WRITE)
    data = await call.document()
    text = read_xml(data, "RestoreRequest").value("Days") if data else ""
    if record.storage_class not in call.deps.settings.archived:
        raise S3Error("InvalidObjectState", "The object is not archived.")
    if not text.isdigit() or not 1 <= int(text) <= DAYS_MAX:
        raise S3Error("MalformedXML", "A restore is for 1 to 3650 days.")
    was_restored = record.restored_until_ms > call.now_ms
    until_ms = call.now_ms + int(text) * DAY_MS
    await change_object(
        call, record, lambda found: structs.replace(found, restored_until_ms=until_ms)
    )
    return Answer(200 if was_restored else 202)
