"""One request to S3, with what it names and who sent it."""

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct, field

from tenfold.objects.blobs.refs import BlobReading, BlobRef, BlobWriter
from tenfold.objects.catalog.buckets import find_bucket
from tenfold.objects.catalog.catalog import Catalog
from tenfold.objects.catalog.records import Bucket
from tenfold.objects.catalog.versions import Quota
from tenfold.objects.s3.auth.identity import Caller, Keys, Team
from tenfold.objects.s3.auth.sigv4 import Signature
from tenfold.objects.s3.errors import S3Error, argument
from tenfold.objects.s3.http.answer import Request
from tenfold.objects.s3.http.body import Readable, read_all

DOCUMENT_BYTES_MAX = 2 << 20


class Blobs(Protocol):
    """What operations need of the store of blobs."""

    def create(self, tier: str, size_bytes: int | None) -> BlobWriter:
        """Start a blob in a tier."""
        ...

    async def open(self, ref: BlobRef, start: int, end: int) -> BlobReading:
        """Open a range of a blob."""
        ...

    async def delete(self, ref: BlobRef) -> None:
        """Remove a blob."""
        ...

    async def redescribe(self, ref: BlobRef, description: bytes) -> None:
        """Replace the description of a blob."""
        ...


class S3Settings(Struct, frozen=True, kw_only=True):
    """How S3 behaves."""

    region: str = "us-east-1"
    domains: tuple[str, ...] = ()
    """Base domains for virtual-hosted-style requests (`bucket.domain`)."""
    tiers: dict[str, str] = field(default_factory=lambda: {"STANDARD": "hot"})
    """The tier of each storage class."""
    archived: frozenset[str] = frozenset()
    """Storage classes that must be restored before they are read."""
    has_acls: bool = False
    """Whether access control lists may share buckets and objects beyond their team."""
    part_bytes_min: int = 5 << 20
    object_bytes_max: int = 5 << 30
    parts_max: int = 10_000


class Dependencies(Struct):
    """What every operation may use."""

    catalog: Catalog
    blobs: Blobs
    keys: Keys
    settings: S3Settings
    now_ms: Callable[[], int]
    new_id: Callable[[], str]


class Call:
    """A request whose signature was checked."""

    def __init__(self, deps: Dependencies, request: Request) -> None:
        self.deps = deps
        self.request = request
        self.headers = request.head.headers
        self.method = request.head.method
        self.query: dict[str, str] = {}
        self.bucket_name = ""
        self.key = ""
        self.caller = Caller()
        self.signature: Signature | None = None
        self.payload: Readable = request.body
        self.now_ms = deps.now_ms()
        self._bucket: Bucket | None = None

    @property
    def bucket(self) -> Bucket:
        """The bucket that the request names; it must exist."""
        if self._bucket is None:
            self._bucket = self.find_bucket(self.bucket_name)
            self._check_owner("x-amz-expected-bucket-owner", self._bucket)
        return self._bucket

    def forget_bucket(self) -> None:
        """Read the bucket again when it is needed next."""
        self._bucket = None

    def find_bucket(self, name: str) -> Bucket:
        """Return a bucket that must exist."""
        found = find_bucket(self.deps.catalog.reader, name)
        if found is None:
            raise S3Error("NoSuchBucket")
        return found

    def check_source_owner(self, bucket: Bucket) -> None:
        """Refuse a copy from a bucket of another owner than the client expects."""
        self._check_owner("x-amz-source-expected-bucket-owner", bucket)

    def _check_owner(self, header: str, bucket: Bucket) -> None:
        expected = self.headers.get(header)
        if expected is not None and expected != bucket.team:
            raise S3Error("AccessDenied", "The bucket has a different owner than expected.")

    @property
    def version(self) -> str:
        """The version that the request names; empty for the current one."""
        version = self.query.get("versionId", "")
        if "versionId" in self.query and not version:
            raise argument("The version id must not be empty.")
        return version

    def team(self, name: str) -> Team:
        """Return a team, which may have no entry of its own any more."""
        return self.deps.keys.team(name) or Team(name=name)

    def quota(self) -> Quota:
        """Return what the team of the bucket may store."""
        team = self.team(self.bucket.team)
        return Quota(team.quota_bytes, team.quota_objects)

    def number(self, name: str, usual: int, most: int) -> int:
        """Return a number of the query, no larger than `most`."""
        text = self.query.get(name, "")
        if not text:
            return usual
        if not text.isdigit() or len(text) > 9:
            raise argument(f"{name} must be a number.")
        return min(int(text), most)

    async def document(self, bytes_max: int = DOCUMENT_BYTES_MAX) -> bytes:
        """Return the body of a request that carries XML."""
        return await read_all(self.payload, bytes_max, lambda: S3Error("MaxMessageLengthExceeded"))
