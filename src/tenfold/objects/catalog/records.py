"""What the catalogue stores about buckets, versions of objects, uploads and parts."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from tenfold.objects.blobs.refs import BlobRef

NULL_VERSION = "null"


class Grant(Struct, frozen=True, omit_defaults=True):
    """One permission for a team, or for a group by its URI."""

    grantee: str
    permission: str
    is_group: bool = False


class Acl(Struct, frozen=True, omit_defaults=True):
    """Who may do what; the owner may always read and change the list itself."""

    owner: str
    grants: tuple[Grant, ...] = ()


class Lock(Struct, frozen=True, omit_defaults=True):
    """Until when a version cannot be deleted or overwritten."""

    mode: str = ""
    """`GOVERNANCE` or `COMPLIANCE`; empty without retention."""
    until_ms: int = 0
    has_legal_hold: bool = False


class Part(Struct, frozen=True, omit_defaults=True):
    """One blob of an object; a multipart object has one per uploaded part."""

    number: int
    size_bytes: int
    etag: str
    ref: BlobRef
    checksum: str = ""
    """The base64 checksum of the part in the algorithm of its object."""
    modified_ms: int = 0


class ObjectRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One version of one key: an object, or a delete marker."""

    key: str
    version: str = NULL_VERSION
    is_marker: bool = False
    size_bytes: int = 0
    etag: str = ""
    modified_ms: int = 0
    storage_class: str = "STANDARD"
    owner: str = ""
    headers: dict[str, str] = {}
    """Stored response headers, such as `content-type`."""
    metadata: dict[str, str] = {}
    tags: dict[str, str] = {}
    checksums: dict[str, str] = {}
    """Base64 by algorithm, such as `CRC32`."""
    checksum_type: str = ""
    parts: tuple[Part, ...] = ()
    is_multipart: bool = False
    manifest: BlobRef | None = None
    """An empty blob whose description is this record, where no part can carry it."""
    acl: Acl | None = None
    lock: Lock = Lock()
    restored_until_ms: int = 0


class LifecycleRule(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One rule of a lifecycle configuration; what is zero or empty is not set."""

    id: str
    is_enabled: bool = True
    prefix: str = ""
    has_filter: bool = True
    tags: dict[str, str] = {}
    size_bytes_over: int = -1
    size_bytes_under: int = -1
    expire_days: int = 0
    expire_at_ms: int = 0
    expire_lone_markers: bool = False
    noncurrent_days: int = 0
    noncurrent_kept: int = 0
    abort_upload_days: int = 0
    transitions: tuple["Transition", ...] = ()
    noncurrent_transitions: tuple["Transition", ...] = ()


class Transition(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """When a version moves to another storage class."""

    storage_class: str
    days: int = 0
    at_ms: int = 0
    kept: int = 0


class CorsRule(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Which web pages may call a bucket from a browser."""

    id: str = ""
    origins: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    max_age_s: int | None = None


class LockDefault(Struct, frozen=True, omit_defaults=True):
    """The retention that new versions of a bucket get."""

    mode: str = ""
    days: int = 0
    years: int = 0


class BucketSettings(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is configured on a bucket."""

    acl: Acl | None = None
    has_lock: bool = False
    lock_default: LockDefault = LockDefault()
    tags: dict[str, str] = {}
    lifecycle: tuple[LifecycleRule, ...] = ()
    cors: tuple[CorsRule, ...] = ()
    quota_bytes: int = 0
    """0: as many as the team may store."""
    ownership: str = "BucketOwnerEnforced"


class Bucket(Struct, frozen=True, kw_only=True):
    """A bucket, with what it holds now."""

    id: int
    name: str
    team: str
    created_ms: int
    versioning: str
    settings: BucketSettings
    stored_bytes: int = 0
    stored_versions: int = 0

    @property
    def is_versioned(self) -> bool:
        """Whether a delete leaves a marker."""
        return self.versioning != ""


class Upload(Struct, frozen=True, kw_only=True):
    """A multipart upload that is not complete."""

    id: str
    bucket: int
    started_ms: int
    record: ObjectRecord
    """The object as it will be, without parts."""
    checksum_algorithm: str = ""
    checksum_type: str = ""


class Refusal(Exception):
    """A change that the catalogue does not make; `code` is the S3 error code."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message


_RECORDS = msgspec.json.Decoder(ObjectRecord)
_SETTINGS = msgspec.json.Decoder(BucketSettings)
_UPLOADS = msgspec.json.Decoder(Upload)
_PARTS = msgspec.json.Decoder(Part)
_ENCODER = msgspec.json.Encoder()


def encode(record: Struct) -> str:
    """Return a record as JSON text."""
    return _ENCODER.encode(record).decode()


def decode_record(text: str | bytes) -> ObjectRecord:
    """Read one version from JSON text."""
    return _RECORDS.decode(text)


def decode_settings(text: str) -> BucketSettings:
    """Read the settings of a bucket from JSON text."""
    return _SETTINGS.decode(text)


def decode_upload(text: str) -> Upload:
    """Read an upload from JSON text."""
    return _UPLOADS.decode(text)


def decode_part(text: str) -> Part:
    """Read a part from JSON text."""
    return _PARTS.decode(text)


def blobs_of(record: ObjectRecord) -> Sequence[BlobRef]:
    """Return every blob that a version needs."""
    refs = [part.ref for part in record.parts]
    return refs if record.manifest is None else [*refs, record.manifest]
