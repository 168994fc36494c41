"""S3 errors: code, status and message."""

from tenfold.model.errors import Unreachable
from tenfold.objects.catalog.records import Refusal
from tenfold.objects.s3.http.body import BodyFailed

_KNOWN: dict[str, tuple[int, str]] = {
    "AccessControlListNotSupported": (400, "The bucket does not allow access control lists."),
    "AccessDenied": (403, "Access denied."),
    "AuthorizationHeaderMalformed": (400, "The authorization header is malformed."),
    "AuthorizationQueryParametersError": (400, "The authorization query parameters are malformed."),
    "BadDigest": (400, "The digest that you sent does not match the body."),
    "BadRequest": (400, "The request is malformed."),
    "BucketAlreadyExists": (409, "The bucket name belongs to another team."),
    "BucketAlreadyOwnedByYou": (409, "Your team owns this bucket already."),
    "BucketNotEmpty": (409, "The bucket is not empty."),
    "EntityTooLarge": (400, "The body is larger than the largest allowed object."),
    "EntityTooSmall": (400, "A part other than the last is smaller than 5 MiB."),
    "ExpectedBucketOwnerMismatch": (403, "The bucket has another owner."),
    "IllegalLocationConstraintException": (400, "This location is not available."),
    "IncompleteBody": (400, "The body is shorter than its Content-Length, or badly framed."),
    "InternalError": (500, "The server met an unexpected condition."),
    "InvalidAccessKeyId": (403, "The access key is unknown."),
    "InvalidArgument": (400, "An argument is invalid."),
    "InvalidBucketName": (400, "The bucket name is invalid."),
    "InvalidBucketState": (409, "The request does not fit the state of the bucket."),
    "InvalidDigest": (400, "The Content-MD5 is not a base64-encoded MD5."),
    "InvalidLocationConstraint": (400, "This location is not available."),
    "InvalidObjectState": (403, "The object is archived; restore it first."),
    "InvalidPart": (400, "A part was not found, or its entity tag differs."),
    "InvalidPartNumber": (416, "The object has no part with this number."),
    "InvalidPartOrder": (400, "The parts are not in ascending order."),
    "InvalidPolicyDocument": (400, "The policy of the form is invalid."),
    "InvalidRange": (416, "The object does not have these bytes."),
    "InvalidRequest": (400, "The request is invalid."),
    "InvalidRetentionPeriod": (400, "The retention period must be positive."),
    "InvalidStorageClass": (400, "The storage class is unknown."),
    "InvalidTag": (400, "A tag is invalid."),
    "InvalidTargetBucketForLogging": (400, "The target bucket is invalid."),
    "InvalidURI": (400, "The URI is malformed."),
    "KeyTooLongError": (400, "The key is longer than 1,024 bytes."),
    "MalformedACLError": (400, "The access control list is malformed."),
    "MalformedPOSTRequest": (400, "The body is not well-formed multipart/form-data."),
    "MalformedXML": (400, "The XML is malformed, or has an unknown element."),
    "MaxMessageLengthExceeded": (400, "The request is too large."),
    "MetadataTooLarge": (400, "The metadata is larger than 2 KiB."),
    "MethodNotAllowed": (405, "The method is not allowed for this resource."),
    "MissingContentLength": (411, "The Content-Length header is required."),
    "MissingSecurityHeader": (400, "A required header is missing."),
    "NoSuchBucket": (404, "The bucket does not exist."),
    "NoSuchBucketPolicy": (404, "The bucket has no policy."),
    "NoSuchCORSConfiguration": (404, "The bucket has no CORS configuration."),
    "NoSuchKey": (404, "The key does not exist."),
    "NoSuchLifecycleConfiguration": (404, "The bucket has no lifecycle configuration."),
    "NoSuchObjectLockConfiguration": (404, "The object has no object lock configuration."),
    "NoSuchTagSet": (404, "The bucket has no tags."),
    "NoSuchUpload": (404, "The upload does not exist; it was completed or aborted."),
    "NoSuchVersion": (404, "The version does not exist."),
    "NoSuchConfiguration": (404, "The configuration does not exist."),
    "NoSuchPublicAccessBlockConfiguration": (404, "The bucket has no public access block."),
    "NoSuchWebsiteConfiguration": (404, "The bucket has no website configuration."),
    "NotImplemented": (501, "This operation or header is not implemented."),
    "ObjectLockConfigurationNotFoundError": (404, "The bucket has no object lock."),
    "OperationAborted": (409, "Another request changed the resource; try again."),
    "OwnershipControlsNotFoundError": (404, "The bucket has no ownership controls."),
    "PreconditionFailed": (412, "A precondition does not hold."),
    "QuotaExceeded": (403, "The quota is exceeded."),
    "ReplicationConfigurationNotFoundError": (404, "The bucket is not replicated."),
    "RequestHeaderSectionTooLarge": (400, "The request head is too large."),
    "RequestTimeout": (400, "The body did not arrive in time."),
    "RequestTimeTooSkewed": (403, "The request was signed more than 15 minutes away from now."),
    "ServerSideEncryptionConfigurationNotFoundError": (404, "The bucket has no encryption."),
    "ServiceUnavailable": (503, "The server is stopping; try again."),
    "SignatureDoesNotMatch": (403, "The signature does not match; check the secret key."),
    "SlowDown": (503, "Too many requests; send fewer at a time."),
    "TooManyBuckets": (400, "The team has as many buckets as it may have."),
    "UnresolvableGrantByEmailAddress": (400, "No team has this e-mail address."),
    "XAmzContentSHA256Mismatch": (400, "x-amz-content-sha256 does not match the body."),
}


class S3Error(Exception):
    """A request that is not answered as asked."""

    def __init__(self, code: str, message: str = "", headers: dict[str, str] | None = None) -> None:
        status, usual = _KNOWN.get(code, (400, code))
        super().__init__(message or usual)
        self.code = code
        self.status = status
        self.message = message or usual
        self.headers = headers or {}


def s3_error(error: Exception) -> S3Error | None:
    """Return what a refusal of another layer is in S3; None for a bug."""
    if isinstance(error, S3Error):
        return error
    if isinstance(error, Refusal | BodyFailed):
        return S3Error(error.code, error.message if error.message != error.code else "")
    if isinstance(error, Unreachable):
        return S3Error("ServiceUnavailable", "Too few backends of the tier can be used; try again.")
    return None


def argument(message: str) -> S3Error:
    """Return the error for an unusable argument."""
    return S3Error("InvalidArgument", message)
