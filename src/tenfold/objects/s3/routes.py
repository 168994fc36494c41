"""Which operation answers which request."""

from collections.abc import Awaitable, Callable, Iterable

from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations import (
    absent,
    acls,
    buckets,
    copying,
    cors,
    deleting,
    forms,
    lifecycle,
    listing,
    locking,
    multipart,
    reading,
    restoring,
    tagging,
    writing,
)

Operation = Callable[[Call], Awaitable[Answer]]

_SERVICE: dict[str, tuple[str, Operation]] = {"GET": ("ListBuckets", buckets.list_all)}
_BUCKET: dict[tuple[str, str], tuple[str, Operation]] = {
    ("PUT", ""): ("CreateBucket", buckets.create),
    ("HEAD", ""): ("HeadBucket", buckets.head),
    ("DELETE", ""): ("DeleteBucket", buckets.delete),
    ("GET", ""): ("ListObjects", listing.list_v1),
    ("GET", "list-type"): ("ListObjectsV2", listing.list_v2),
    ("GET", "versions"): ("ListObjectVersions", listing.list_all_versions),
    ("GET", "uploads"): ("ListMultipartUploads", listing.list_all_uploads),
    ("GET", "location"): ("GetBucketLocation", buckets.get_location),
    ("GET", "versioning"): ("GetBucketVersioning", buckets.get_versioning),
    ("PUT", "versioning"): ("PutBucketVersioning", buckets.put_versioning),
    ("POST", "delete"): ("DeleteObjects", deleting.delete_objects),
    ("POST", ""): ("PostObject", forms.post_object),
    ("GET", "tagging"): ("GetBucketTagging", tagging.get_bucket_tags),
    ("PUT", "tagging"): ("PutBucketTagging", tagging.put_bucket_tags),
    ("DELETE", "tagging"): ("DeleteBucketTagging", tagging.delete_bucket_tags),
    ("GET", "cors"): ("GetBucketCors", cors.get_cors),
    ("PUT", "cors"): ("PutBucketCors", cors.put_cors),
    ("DELETE", "cors"): ("DeleteBucketCors", cors.delete_cors),
    ("GET", "lifecycle"): ("GetBucketLifecycleConfiguration", lifecycle.get_lifecycle),
    ("PUT", "lifecycle"): ("PutBucketLifecycleConfiguration", lifecycle.put_lifecycle),
    ("DELETE", "lifecycle"): ("DeleteBucketLifecycle", lifecycle.delete_lifecycle),
    ("GET", "object-lock"): ("GetObjectLockConfiguration", locking.get_configuration),
    ("PUT", "object-lock"): ("PutObjectLockConfiguration", locking.put_configuration),
    ("GET", "acl"): ("GetBucketAcl", acls.get_bucket_acl),
    ("PUT", "acl"): ("PutBucketAcl", acls.put_bucket_acl),
    ("GET", "policy"): ("GetBucketPolicy", absent.policy),
    ("GET", "encryption"): ("GetBucketEncryption", absent.encryption),
    ("GET", "website"): ("GetBucketWebsite", absent.website),
    ("GET", "publicAccessBlock"): ("GetPublicAccessBlock", absent.public_access),
    ("GET", "logging"): ("GetBucketLogging", absent.logging),
    ("GET", "requestPayment"): ("GetBucketRequestPayment", absent.payment),
    ("GET", "ownershipControls"): ("GetBucketOwnershipControls", absent.ownership),
    ("GET", "accelerate"): ("GetBucketAccelerateConfiguration", absent.acceleration),
    ("GET", "notification"): ("GetBucketNotificationConfiguration", absent.notification),
    ("GET", "policyStatus"): ("GetBucketPolicyStatus", absent.policy),
    ("GET", "replication"): ("GetBucketReplication", absent.replication),
    ("GET", "analytics"): ("ListBucketAnalyticsConfigurations", absent.analytics),
    ("GET", "intelligent-tiering"): (
        "ListBucketIntelligentTieringConfigurations",
        absent.intelligent_tiering,
    ),
    ("GET", "inventory"): ("ListBucketInventoryConfigurations", absent.inventory),
    ("GET", "metrics"): ("ListBucketMetricsConfigurations", absent.metrics),
}
_OBJECT: dict[tuple[str, str], tuple[str, Operation]] = {
    ("PUT", ""): ("PutObject", writing.put_object),
    ("GET", ""): ("GetObject", reading.get_object),
    ("HEAD", ""): ("HeadObject", reading.head_object),
    ("DELETE", ""): ("DeleteObject", deleting.delete_object),
    ("GET", "attributes"): ("GetObjectAttributes", reading.get_attributes),
    ("PUT", "+copy"): ("CopyObject", copying.copy_object),
    ("POST", "uploads"): ("CreateMultipartUpload", multipart.create_upload),
    ("PUT", "uploadId"): ("UploadPart", multipart.upload_part),
    ("PUT", "uploadId+copy"): ("UploadPartCopy", copying.copy_part),
    ("POST", "uploadId"): ("CompleteMultipartUpload", multipart.complete),
    ("DELETE", "uploadId"): ("AbortMultipartUpload", multipart.abort),
    ("GET", "uploadId"): ("ListParts", multipart.list_all_parts),
    ("GET", "tagging"): ("GetObjectTagging", tagging.get_tags),
    ("PUT", "tagging"): ("PutObjectTagging", tagging.put_tags),
    ("DELETE", "tagging"): ("DeleteObjectTagging", tagging.delete_tags),
    ("GET", "acl"): ("GetObjectAcl", acls.get_acl),
    ("PUT", "acl"): ("PutObjectAcl", acls.put_acl),
    ("GET", "retention"): ("GetObjectRetention", locking.get_retention),
    ("PUT", "retention"): ("PutObjectRetention", locking.put_retention),
    ("GET", "legal-hold"): ("GetObjectLegalHold", locking.get_legal_hold),
    ("PUT", "legal-hold"): ("PutObjectLegalHold", locking.put_legal_hold),
    ("POST", "restore"): ("RestoreObject", restoring.restore),
}


def _named(table: Iterable[tuple[str, str]], *others: str) -> frozenset[str]:
    """Return the query names that select an operation: those of a table, and others."""
    return frozenset(
        {part.removesuffix("+copy") for _, part in table if part not in ("", "+copy")} | {*others}
    )


_BUCKET_PARTS = _named(_BUCKET)
_OBJECT_PARTS = _named(_OBJECT, "select", "torrent")
"""Select and torrent are answered with NotImplemented, not as if they were not asked for."""


def find_operation(call: Call) -> tuple[str, Operation]:
    """Return the name and the function of the operation that a request asks for."""
    if call.method == "OPTIONS" and call.bucket_name:
        return "Preflight", cors.preflight
    if not call.bucket_name:
        found = _SERVICE.get(call.method)
    elif not call.key:
        found = _BUCKET.get((call.method, _part(call, _BUCKET_PARTS)))
    else:
        found = _OBJECT.get((call.method, _object_part(call)))
    if found is not None:
        return found
    if call.method not in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        raise S3Error("MethodNotAllowed")
    raise S3Error("NotImplemented")


def _object_part(call: Call) -> str:
    part = _part(call, _OBJECT_PARTS)
    if call.method == "PUT" and "x-amz-copy-source" in call.headers:
        return f"{part}+copy"
    return part


def _part(call: Call, known: frozenset[str]) -> str:
    found = [name for name in call.query if name in known]
    return found[0] if found else ""
