"""Access control lists of buckets and objects, and what stands in their place."""

from msgspec import structs

from tenfold.objects.catalog.buckets import change_settings
from tenfold.objects.catalog.records import Acl, Bucket, BucketSettings, Grant, ObjectRecord
from tenfold.objects.s3.access import (
    FULL,
    PERMISSIONS,
    READ_ACP,
    WRITE_ACP,
    acl_of_headers,
    require_acls,
    require_bucket,
    require_object,
)
from tenfold.objects.s3.auth.identity import ALL_USERS, AUTHENTICATED_USERS
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error, argument
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.operations.buckets import XML, owner_node
from tenfold.objects.s3.operations.changing import change_object
from tenfold.objects.s3.operations.reading import existing
from tenfold.objects.s3.xml import Element, document, node, read_xml, tag

GRANTS_MAX = 100
_XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'


async def get_bucket_acl(call: Call) -> Answer:
    """Send who may do what to a bucket."""
    bucket = require_bucket(call, READ_ACP)
    return _policy(call, bucket.settings.acl or private(bucket.team))


async def put_bucket_acl(call: Call) -> Answer:
    """Replace who may do what to a bucket."""
    bucket = require_bucket(call, WRITE_ACP)
    acl = await _wanted(call, bucket.team, bucket.team)

    def change(settings: BucketSettings) -> BucketSettings:
        return structs.replace(settings, acl=acl)

    await call.deps.catalog.write(lambda c: change_settings(c, bucket.id, change))
    return Answer(200)


async def get_acl(call: Call) -> Answer:
    """Send who may do what to an object."""
    bucket, record = _object(call, READ_ACP)
    return _policy(call, record.acl or private(record.owner or bucket.team))


async def put_acl(call: Call) -> Answer:
    """Replace who may do what to an object."""
    bucket, record = _object(call, WRITE_ACP)
    acl = await _wanted(call, record.owner or bucket.team, bucket.team)
    await change_object(call, record, lambda found: structs.replace(found, acl=acl))
    return Answer(200)


def private(owner: str) -> Acl:
    """Return the list that grants everything to its owner alone."""
    return Acl(owner, (Grant(owner, FULL),))


def _object(call: Call, permission: str) -> tuple[Bucket, ObjectRecord]:
    bucket = call.bucket
    record = existing(call, bucket, call.key, call.version)
    require_object(call, bucket, record, permission)
    return bucket, record


async def _wanted(call: Call, owner: str, bucket_owner: str) -> Acl:
    data = await call.document()
    acl = acl_of_headers(call, owner, bucket_owner)
    if acl is not None:
        return acl
    if not data:
        raise S3Error("MissingSecurityHeader", "An access control list is missing.")
    root = read_xml(data, "AccessControlPolicy")
    grants = root.first("AccessControlList")
    if grants is None or root.value("Owner", "ID") != owner:
        raise S3Error("MalformedACLError" if grants is None else "AccessDenied")
    read = tuple(_grant(call, element) for element in grants.all("Grant"))
    if len(read) > GRANTS_MAX:
        raise S3Error("MalformedACLError")
    if any(grant.is_group or grant.grantee != owner for grant in read):
        require_acls(call)
    return Acl(owner, read)


def _grant(call: Call, element: Element) -> Grant:
    grantee, permission = element.first("Grantee"), element.value("Permission")
    if grantee is None or permission not in PERMISSIONS:
        raise S3Error("MalformedACLError")
    match grantee.attributes.get("type", ""):
        case "Group":
            uri = grantee.value("URI")
            if uri not in (ALL_USERS, AUTHENTICATED_USERS):
                raise argument("The group is unknown.")
            return Grant(uri, permission, is_group=True)
        case "AmazonCustomerByEmail":
            team = call.deps.keys.team_by_email(grantee.value("EmailAddress"))
            if team is None:
                raise S3Error("UnresolvableGrantByEmailAddress")
            return Grant(team.name, permission)
        case _:
            name = grantee.value("ID")
            if call.deps.keys.team(name) is None:
                raise argument("The grantee is unknown.")
            return Grant(name, permission)


def _policy(call: Call, acl: Acl) -> Answer:
    grants = [
        node("Grant", _grantee(call, grant), tag("Permission", grant.permission))
        for grant in sorted(acl.grants, key=lambda grant: not grant.is_group)
    ]
    body = document(
        "AccessControlPolicy",
        [owner_node(call, acl.owner), node("AccessControlList", *grants)],
    )
    return Answer(200, dict(XML), body)


def _grantee(call: Call, grant: Grant) -> str:
    if grant.is_group:
        return f'<Grantee {_XSI} xsi:type="Group">{tag("URI", grant.grantee)}</Grantee>'
    team = call.team(grant.grantee)
    inner = tag("ID", team.name) + tag("DisplayName", team.display_name or team.name)
    return f'<Grantee {_XSI} xsi:type="CanonicalUser">{inner}</Grantee>'
