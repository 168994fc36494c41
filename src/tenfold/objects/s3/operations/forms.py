"""PostObject: a form that a browser sends, with a signed policy of what it may contain."""

import base64
import hmac
import json
import re
from typing import Any, cast
from urllib.parse import urlencode

from msgspec import Struct

from tenfold.objects.catalog.versions import Condition
from tenfold.objects.s3.access import WRITE, require_bucket
from tenfold.objects.s3.auth.identity import Caller
from tenfold.objects.s3.auth.sigv4 import ALGORITHM, key_of, sign
from tenfold.objects.s3.call import Call
from tenfold.objects.s3.checksums import claimed
from tenfold.objects.s3.errors import S3Error, argument
from tenfold.objects.s3.headers import checksum_headers
from tenfold.objects.s3.http.answer import Answer
from tenfold.objects.s3.ingest import Expected
from tenfold.objects.s3.operations.buckets import XML
from tenfold.objects.s3.operations.writing import check_room, draft_of, store
from tenfold.objects.s3.times import parse_iso
from tenfold.objects.s3.uri import encode_path
from tenfold.objects.s3.xml import DECLARATION, node, read_xml, tag

FIELDS_BYTES_MAX = 64 << 10
FORM_BYTES_MAX = 256 << 20
"""A form is held in memory; larger objects are uploaded with PUT."""
_UNCHECKED = ("x-amz-signature", "file", "policy", "x-ignore-")
_BOUNDARY = re.compile(r'multipart/form-data\s*;.*?boundary="?([^";,\s]{1,200})"?', re.IGNORECASE)
_EXPIRATION = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_NAME = re.compile(r'[;\s]name="([^"]*)"', re.IGNORECASE)
_FILENAME = re.compile(r'[;\s]filename="([^"]*)"', re.IGNORECASE)


class _Form(Struct):
    fields: dict[str, str]
    filename: str
    file: bytes


class _Memory:
    """A body that is in memory already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self) -> bytes:
        """Return all, and then nothing."""
        data, self._data = self._data, b""
        return data


async def post_object(call: Call) -> Answer:
    """Store the file of a form."""
    match = _BOUNDARY.search(call.headers.get("content-type", ""))
    if match is None:
        raise S3Error("MalformedPOSTRequest", "The body must be multipart/form-data.")
    form = _parse(await call.document(FORM_BYTES_MAX), match[1].encode("latin-1"))
    key = form.fields.get("key", "")
    if not key:
        raise argument("The form has no key.")
    form.fields["key"] = key.replace("${filename}", form.filename)
    _authenticate(call, form)
    bucket = require_bucket(call, WRITE)
    call.key = form.fields["key"]
    # From here on the fields of the form are what headers are elsewhere.
    call.headers = {name: value for name, value in form.fields.items() if name != "key"}
    if "acl" in call.headers:
        call.headers["x-amz-acl"] = call.headers.pop("acl")
    if "tagging" in call.headers:
        call.headers["x-amz-tagging"] = _tags_of(call.headers.pop("tagging"))
    draft = draft_of(call, bucket)
    check_room(call, bucket, len(form.file))
    given = claimed(call.headers)
    expected = Expected(
        size_bytes=len(form.file),
        size_bytes_max=call.deps.settings.object_bytes_max,
        algorithm=given[0] if given else "",
        checksum=given[1] if given else "",
    )
    record = await store(call, draft, _Memory(form.file), expected, Condition())
    answer = _answer(call, record.etag)
    answer.headers |= checksum_headers(record)
    if bucket.is_versioned:
        answer.headers["x-amz-version-id"] = record.version
    return answer


def _answer(call: Call, etag: str) -> Answer:
    fields = call.headers
    path = f"/{call.bucket_name}/{encode_path(call.key)}"
    headers = {"etag": f'"{etag}"', "location": path}
    redirect = fields.get("success_action_redirect", fields.get("redirect", ""))
    if redirect.startswith(("http://", "https://")) and not re.search(r"[\x00-\x20]", redirect):
        query = urlencode({"bucket": call.bucket_name, "key": call.key, "etag": f'"{etag}"'})
        joint = "&" if "?" in redirect else "?"
        return Answer(303, {**headers, "location": f"{redirect}{joint}{query}"})
    status = fields.get("success_action_status", "")
    if status == "201":
        parts = [tag("Location", path), tag("Bucket", call.bucket_name), tag("Key", call.key)]
        # Alone among the answers, this one has no namespace.
        body = (DECLARATION + node("PostResponse", *parts, tag("ETag", f'"{etag}"'))).encode()
        return Answer(201, {**headers, **XML}, body)
    return Answer(200 if status == "200" else 204, headers)


def _parse(data: bytes, boundary: bytes) -> _Form:
    delimiter = b"\r\n--" + boundary
    parts = (b"\r\n" + data).split(delimiter)
    if len(parts) < 3 or not parts[-1].startswith(b"--"):
        raise S3Error("MalformedPOSTRequest")
    form = _Form({}, "", b"")
    for part in parts[1:-1]:
        head, gap, content = part.partition(b"\r\n\r\n")
        text = head.decode("utf-8", "replace")
        name = _NAME.search(text)
        if not gap or name is None:
            raise S3Error("MalformedPOSTRequest")
        if name[1].lower() == "file":
            # What follows the file is ignored, as S3 does.
            filename = _FILENAME.search(text)
            form.filename, form.file = filename[1] if filename else "", content
            return form
        if len(content) > FIELDS_BYTES_MAX:
            raise S3Error("MaxMessageLengthExceeded")
        form.fields[name[1].lower()] = _text(content)
    raise argument("The form has no file.")


def _text(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise S3Error("MalformedPOSTRequest", "A field of the form is not UTF-8.") from None
    return text


def _authenticate(call: Call, form: _Form) -> None:
    """Check the signature of the policy, and the form against it."""
    fields = form.fields
    if "policy" not in fields:
        if "x-amz-signature" in fields or "signature" in fields or "awsaccesskeyid" in fields:
            raise argument("The form has no policy.")
        call.caller = Caller()
        return
    if "x-amz-signature" in fields:
        if fields.get("x-amz-algorithm") != ALGORITHM:
            raise argument("The algorithm of the form is not supported.")
        credential = fields.get("x-amz-credential", "")
        key, _, derived = key_of(credential, fields.get("x-amz-date", ""), call.deps.keys)
        claimed_signature, expected = fields["x-amz-signature"], sign(derived, fields["policy"])
    else:
        key, claimed_signature, expected = _version2(call, fields)
    if not hmac.compare_digest(expected.encode(), claimed_signature.encode()):
        raise S3Error("SignatureDoesNotMatch")
    if key.is_read_only:
        raise S3Error("AccessDenied", "The access key is read-only.")
    call.caller = Caller(key.team, key.id)
    _check_policy(call, form)


def _version2(call: Call, fields: dict[str, str]) -> tuple[Any, str, str]:
    """Forms may be signed the old way, over the policy alone."""
    if "signature" not in fields or "awsaccesskeyid" not in fields:
        raise argument("The form has no signature.")
    key = call.deps.keys.key(fields["awsaccesskeyid"])
    if key is None:
        raise S3Error("InvalidAccessKeyId")
    digest = hmac.digest(key.secret.encode(), fields["policy"].encode(), "sha1")
    return key, fields["signature"], base64.b64encode(digest).decode()


def _check_policy(call: Call, form: _Form) -> None:
    policy = _policy(form.fields["policy"])
    expires = policy.get("expiration")
    conditions = policy.get("conditions")
    if not isinstance(expires, str) or not isinstance(conditions, list):
        raise S3Error("InvalidPolicyDocument")
    expires_ms = parse_iso(expires) if _EXPIRATION.fullmatch(expires) else None
    if expires_ms is None:
        raise S3Error("InvalidPolicyDocument", "The expiration is malformed.")
    if expires_ms <= call.now_ms:
        raise S3Error("AccessDenied", "The policy has expired.")
    values = {**form.fields, "bucket": call.bucket_name}
    covered: set[str] = set()
    for condition in cast("list[Any]", conditions):
        covered.add(_check_condition(condition, values, len(form.file)))
    for name in form.fields:
        is_free = name in _FREE or name.startswith(_UNCHECKED)
        if name not in covered and not is_free:
            raise S3Error("AccessDenied", f"The policy does not allow the field {name}.")


_FREE = ("awsaccesskeyid", "signature", "x-amz-credential", "x-amz-algorithm", "x-amz-date")


def _policy(text: str) -> dict[str, Any]:
    try:
        found: object = json.loads(base64.b64decode(text))
    except (ValueError, RecursionError):
        raise S3Error("InvalidPolicyDocument") from None
    if not isinstance(found, dict):
        raise S3Error("InvalidPolicyDocument")
    return cast("dict[str, Any]", found)


def _check_condition(condition: Any, values: dict[str, str], size: int) -> str:
    """Check one condition and return the field that it covers."""
    if isinstance(condition, dict):
        pairs = list(cast("dict[str, Any]", condition).items())
        if len(pairs) != 1:
            raise S3Error("InvalidPolicyDocument")
        condition = ["eq", f"${pairs[0][0]}", pairs[0][1]]
    if not isinstance(condition, list) or len(cast("list[Any]", condition)) != 3:
        raise S3Error("InvalidPolicyDocument")
    kind, name, wanted = cast("list[Any]", condition)
    if str(kind).lower() == "content-length-range":
        return _check_length(name, wanted, size)
    if not isinstance(name, str) or not name.startswith("$") or not isinstance(wanted, str):
        raise S3Error("InvalidPolicyDocument")
    field = name[1:].lower()
    value = values.get(field, "")
    match str(kind).lower():
        case "eq":
            is_met = value == wanted
        case "starts-with":
            is_met = all(one.strip().startswith(wanted) for one in _alternatives(field, value))
        case _:
            raise S3Error("InvalidPolicyDocument")
    if not is_met:
        raise S3Error("AccessDenied", f"The field {field} does not meet the policy.")
    return field


def _alternatives(field: str, value: str) -> list[str]:
    return value.split(",") if field == "content-type" else [value]


def _check_length(low: Any, high: Any, size: int) -> str:
    if not str(low).isdigit() or not str(high).isdigit():
        raise S3Error("InvalidPolicyDocument")
    if size > int(high):
        raise S3Error("EntityTooLarge")
    if size < int(low):
        raise S3Error("EntityTooSmall", "The file is smaller than the policy allows.")
    return "content-length-range"


def _tags_of(text: str) -> str:
    """Return the tags of a form, which come as XML, as a header has them."""
    found = read_xml(text.encode(), "Tagging").first("TagSet")
    pairs = [] if found is None else [(o.value("Key"), o.value("Value")) for o in found.all("Tag")]
    return urlencode(pairs)
