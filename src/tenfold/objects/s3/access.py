"""Who may do what: the team of a bucket everything, others what lists of access grant."""

from collections.abc import Mapping

from tenfold.objects.catalog.records import Acl, Bucket, Grant, ObjectRecord
from tenfold.objects.s3.auth.identity import ALL_USERS, AUTHENTICATED_USERS, Caller
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.errors import S3Error, argument

READ, WRITE, READ_ACP, WRITE_ACP, FULL = "READ", "WRITE", "READ_ACP", "WRITE_ACP", "FULL_CONTROL"
PERMISSIONS = (FULL, READ, WRITE, READ_ACP, WRITE_ACP)
CANNED = (
    "private",
    "public-read",
    "public-read-write",
    "authenticated-read",
    "bucket-owner-read",
    "bucket-owner-full-control",
)
_GRANT_HEADERS = {
    "x-amz-grant-read": READ,
    "x-amz-grant-write": WRITE,
    "x-amz-grant-read-acp": READ_ACP,
    "x-amz-grant-write-acp": WRITE_ACP,
    "x-amz-grant-full-control": FULL,
}


def require_bucket(call: Call, permission: str) -> Bucket:
    """Return the bucket, if the caller may do this to it."""
    bucket = call.bucket
    if not may_use_bucket(call, bucket, permission):
        raise S3Error("AccessDenied")
    return bucket


def require_owner(call: Call) -> Bucket:
    """Return the bucket, if it is the caller's own."""
    bucket = call.bucket
    if call.caller.team != bucket.team:
        raise S3Error("AccessDenied")
    return bucket


def may_use_bucket(call: Call, bucket: Bucket, permission: str) -> bool:
    """Return whether the caller may do this to a bucket."""
    if call.caller.team == bucket.team:
        return True
    return call.deps.settings.has_acls and is_granted(bucket.settings.acl, call.caller, permission)


def require_object(call: Call, bucket: Bucket, record: ObjectRecord, permission: str) -> None:
    """Refuse a caller who may not do this to an object."""
    caller = call.caller
    if caller.team == bucket.team and call.caller.team:
        return
    if not call.deps.settings.has_acls:
        raise S3Error("AccessDenied")
    if record.owner == caller.team and caller.team:
        return
    if not is_granted(record.acl, caller, permission):
        raise S3Error("AccessDenied")


def missing_key(call: Call, bucket: Bucket, code: str) -> S3Error:
    """Return the error for a key that is not there; who may not list does not learn that."""
    return S3Error(code if may_use_bucket(call, bucket, READ) else "AccessDenied")


def is_granted(acl: Acl | None, caller: Caller, permission: str) -> bool:
    """Return whether a list grants a permission to a caller."""
    if acl is None:
        return False
    if acl.owner == caller.team and caller.team:
        return permission in (READ_ACP, WRITE_ACP) or _has(acl, caller, permission)
    return _has(acl, caller, permission)


def _has(acl: Acl, caller: Caller, permission: str) -> bool:
    return any(
        grant.permission in (permission, FULL) and _is_for(grant, caller) for grant in acl.grants
    )


def _is_for(grant: Grant, caller: Caller) -> bool:
    if grant.is_group:
        return grant.grantee == ALL_USERS or (
            grant.grantee == AUTHENTICATED_USERS and not caller.is_anonymous
        )
    return grant.grantee == caller.team and not caller.is_anonymous


def acl_of_headers(call: Call, owner: str, bucket_owner: str) -> Acl | None:
    """Return the list that the headers of a request ask for; None for the usual one."""
    headers = call.headers
    canned = headers.get("x-amz-acl", "")
    given = [name for name in _GRANT_HEADERS if name in headers]
    if not canned and not given:
        return None
    if canned and given:
        raise S3Error("InvalidRequest", "A request has either x-amz-acl or grants.")
    if given:
        require_acls(call)
        return Acl(owner, tuple(_granted(call, headers, given)))
    acl = canned_acl(canned, owner, bucket_owner)
    if canned not in ("private", "bucket-owner-full-control"):
        require_acls(call)
    return acl


def require_acls(call: Call) -> None:
    """Refuse lists of access where the server has them off."""
    if not call.deps.settings.has_acls:
        raise S3Error("AccessControlListNotSupported")


def canned_acl(name: str, owner: str, bucket_owner: str) -> Acl:
    """Return a list by its canned name."""
    if name not in CANNED:
        raise argument("The canned access control list is unknown.")
    grants = [Grant(owner, FULL)]
    if name.startswith("public-read"):
        grants.append(Grant(ALL_USERS, READ, is_group=True))
    if name == "public-read-write":
        grants.append(Grant(ALL_USERS, WRITE, is_group=True))
    if name == "authenticated-read":
        grants.append(Grant(AUTHENTICATED_USERS, READ, is_group=True))
    if name == "bucket-owner-read":
        grants.append(Grant(bucket_owner, READ))
    if name == "bucket-owner-full-control" and bucket_owner != owner:
        grants.append(Grant(bucket_owner, FULL))
    return Acl(owner, tuple(grants))


def _granted(call: Call, headers: Mapping[str, str], given: list[str]) -> list[Grant]:
    grants: list[Grant] = []
    for header in given:
        for part in headers[header].split(","):
            kind, _, value = part.strip().partition("=")
            grants.append(
                _grant(call, kind.strip().lower(), value.strip('" '), _GRANT_HEADERS[header])
            )
    return grants


def _grant(call: Call, kind: str, value: str, permission: str) -> Grant:
    if kind == "id":
        if call.deps.keys.team(value) is None:
            raise argument("The grantee is unknown.")
        return Grant(value, permission)
    if kind == "emailaddress":
        team = call.deps.keys.team_by_email(value)
        if team is None:
            raise S3Error("UnresolvableGrantByEmailAddress")
        return Grant(team.name, permission)
    if kind == "uri" and value in (ALL_USERS, AUTHENTICATED_USERS):
        return Grant(value, permission, is_group=True)
    raise argument("The grantee is malformed.")
