"""Changes of what is stored about an object: in its row, and in the description of its blob."""

from collections.abc import Callable

from tenfold.objects.catalog.records import ObjectRecord
from tenfold.objects.catalog.versions import change_version
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.ingest import describe


async def change_object(
    call: Call, found: ObjectRecord, change: Callable[[ObjectRecord], ObjectRecord]
) -> ObjectRecord:
    """Change one version, and the description in its blob."""
    bucket = call.bucket
    record = await call.deps.catalog.write(
        lambda c: change_version(c, bucket.id, found.key, found.version, change)
    )
    ref = record.manifest or (record.parts[0].ref if record.parts else None)
    if ref is not None:
        await call.deps.blobs.redescribe(ref, describe(bucket, record))
    return record
