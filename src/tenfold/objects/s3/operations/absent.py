"""What a bucket does not have here: asked for, it is said to be absent rather than unknown."""

from tenfold.objects.s3.access import require_owner
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.xml import document, node, tag


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
