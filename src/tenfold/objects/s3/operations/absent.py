"""What a bucket does not have here: asked for, it is said to be absent rather than unknown."""

from collections.abc import Sequence

from tenfold.objects.s3.access import require_owner
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.xml import boolean, document, node, tag


async def policy(call: Call) -> Answer:
    """Say that the bucket has no policy."""
    require_owner(call)
    raise S3Error("NoSuchBucketPolicy")


async def encryption(call: Call) -> Answer:
    """Say that the bucket has no encryption."""
    require_owner(call)
    raise S3Error("ServerSideEncryptionConfigurationNotFoundError")


async def website(call: Call) -> Answer:
    """Say that the bucket is no website."""
    require_owner(call)
    raise S3Error("NoSuchWebsiteConfiguration")


async def public_access(call: Call) -> Answer:
    """Say that the bucket has no settings about public access."""
    require_owner(call)
    raise S3Error("NoSuchPublicAccessBlockConfiguration")


async def logging(call: Call) -> Answer:
    """Say that access to the bucket is not logged."""
    require_owner(call)
    return Answer(200, dict(XML), document("BucketLoggingStatus", []))


async def payment(call: Call) -> Answer:
    """Say that the owner pays."""
    require_owner(call)
    body = document("RequestPaymentConfiguration", [tag("Payer", "BucketOwner")])
    return Answer(200, dict(XML), body)


async def ownership(call: Call) -> Answer:
    """Say who owns objects: the bucket's team, unless lists of access are on."""
    require_owner(call)
    rule = "ObjectWriter" if call.deps.settings.has_acls else "BucketOwnerEnforced"
    body = document("OwnershipControls", [node("Rule", tag("ObjectOwnership", rule))])
    return Answer(200, dict(XML), body)


async def acceleration(call: Call) -> Answer:
    """Say that transfers are not accelerated."""
    return _nothing(call, "AccelerateConfiguration")


async def notification(call: Call) -> Answer:
    """Say that nobody is notified of changes."""
    return _nothing(call, "NotificationConfiguration")


async def replication(call: Call) -> Answer:
    """Say that the bucket is not replicated."""
    require_owner(call)
    raise S3Error("ReplicationConfigurationNotFoundError")


async def analytics(call: Call) -> Answer:
    """List no analytics configurations."""
    return _no_configurations(call, "ListBucketAnalyticsConfigurationResult")


async def intelligent_tiering(call: Call) -> Answer:
    """List no configurations of intelligent tiering."""
    return _no_configurations(call, "ListBucketIntelligentTieringConfigurationsOutput")


async def inventory(call: Call) -> Answer:
    """List no inventories."""
    return _no_configurations(call, "ListInventoryConfigurationsResult")


async def metrics(call: Call) -> Answer:
    """List no metrics configurations."""
    return _no_configurations(call, "ListMetricsConfigurationsResult")


def _no_configurations(call: Call, name: str) -> Answer:
    """List nothing; a configuration that is named does not exist."""
    if "id" in call.query:
        require_owner(call)
        raise S3Error("NoSuchConfiguration")
    return _nothing(call, name, [tag("IsTruncated", boolean(False))])


def _nothing(call: Call, name: str, children: Sequence[str] = ()) -> Answer:
    require_owner(call)
    return Answer(200, dict(XML), document(name, list(children)))
