"""Clients with mixed requests, each with keys of its own, so that it knows what it must find."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from benchmarks.chaos.objects.expected import ABSENT, NOTHING, Expected, digest_of

BUCKET = "kept"
KEYS = 24
"""Keys of a client that are overwritten, moved and deleted; others are written once."""
SIZES = (0, 10, 4_096, 60_000, 300_000, 1_000_000)
PART_BYTES = 5 << 20
CLASSES = ("STANDARD", "STANDARD_IA")
PAUSE_S = 0.05
WEIGHTS = {"put": 30, "once": 10, "create": 4, "parts": 5, "copy": 10, "delete": 8, "get": 30}

Connect = Callable[[], Any]


def code_of(error: ClientError) -> tuple[int, str]:
    """Return the status and the code of an answer."""
    answer: Any = error.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"]["Code"]


class Client:
    """Sends one request after the other until it is stopped, whatever becomes of the server."""

    def __init__(self, number: int, seed: int, connect: Connect) -> None:
        self.expected = Expected()
        self.done = Counter[str]()
        self.wrong: list[str] = []
        """Reads that found what cannot be."""
        self.refused: list[str] = []
        """Answers that no kill explains."""
        self._number = number
        self._dice = Random(f"{seed}/{number}")
        self._connect = connect
        self._noise = Random(seed).randbytes(PART_BYTES)
        self._count = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._requests: dict[str, Callable[[Any], None]] = {
            "put": self._put,
            "once": self._once,
            "create": self._create,
            "parts": self._parts,
            "copy": self._copy,
            "delete": self._delete,
            "get": self._get,
        }

    def start(self) -> None:
        """Send requests until stopped; one that fails is not sent again."""
        self._thread.start()

    def stop(self) -> None:
        """End after the request under way."""
        self._stopped.set()

    def join(self, timeout_s: float) -> None:
        """Wait for the end."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def _run(self) -> None:
        s3 = self._connect()
        names, weights = list(WEIGHTS), list(WEIGHTS.values())
        while not self._stopped.is_set():
            self._count += 1
            name = self._dice.choices(names, weights)[0]
            try:
                self._requests[name](s3)
                self.done[name] += 1
            except ClientError as error:
                self.expected.fail(was_sent=True)
                self.refused.append(f"{name}: {code_of(error)}")
            except EndpointConnectionError:
                self.expected.fail(was_sent=False)
                self._stopped.wait(PAUSE_S)
            except (BotoCoreError, OSError):
                self.expected.fail(was_sent=True)

    def _key(self) -> str:
        return f"{self._number}/{self._dice.randrange(KEYS)}"

    def _data(self) -> bytes:
        head = f"{self._number} {self._count} ".encode()
        return (head + self._noise)[: self._dice.choice(SIZES)]

    def _put(self, s3: Any) -> None:
        self._write(s3, self._key())

    def _once(self, s3: Any) -> None:
        self._write(s3, f"{self._number}/once/{self._count}")

    def _write(self, s3: Any, key: str, **options: str) -> None:
        data = self._data()
        digest = digest_of(data)
        self.expected.begin(key, digest)
        storage_class = self._dice.choice(CLASSES)
        s3.put_object(Bucket=BUCKET, Key=key, Body=data, StorageClass=storage_class, **options)
        self.expected.done(key, digest)

    def _create(self, s3: Any) -> None:
        """Commit a manifest: written only where there is none."""
        key = f"{self._number}/manifest/{self._dice.randrange(KEYS)}"
        was_sure = self.expected.is_sure(key)
        before = self.expected.possible(key)
        try:
            self._write(s3, key, IfNoneMatch="*")
        except ClientError as error:
            if code_of(error) != (412, "PreconditionFailed") or before == NOTHING:
                raise
            self.expected.restore(key, before - NOTHING)
            return
        if was_sure:
            self.wrong.append(f"{key} was created twice")

    def _parts(self, s3: Any) -> None:
        where = {"Bucket": BUCKET, "Key": self._key()}
        parts = [self._noise, self._data() or b"end"]
        digest = digest_of(b"".join(parts))
        upload = s3.create_multipart_upload(**where)["UploadId"]
        done: list[dict[str, Any]] = []
        for number, data in enumerate(parts, 1):
            made = s3.upload_part(**where, UploadId=upload, PartNumber=number, Body=data)
            done.append({"PartNumber": number, "ETag": made["ETag"]})
        self.expected.begin(where["Key"], digest)
        s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": done})
        self.expected.done(where["Key"], digest)

    def _copy(self, s3: Any) -> None:
        """Copy an object to another key, or to another tier."""
        source, key = self._key(), self._key()
        if not self.expected.is_sure(source) or len(self.expected.possible(source)) > 1:
            return
        (digest,) = self.expected.possible(source)
        self.expected.begin(key, digest)
        s3.copy_object(
            Bucket=BUCKET,
            Key=key,
            CopySource={"Bucket": BUCKET, "Key": source},
            StorageClass=self._dice.choice(CLASSES),
            MetadataDirective="REPLACE",
        )
        self.expected.done(key, digest)

    def _delete(self, s3: Any) -> None:
        key = self._key()
        self.expected.begin(key, ABSENT)
        s3.delete_object(Bucket=BUCKET, Key=key)
        self.expected.done(key, ABSENT)

    def _get(self, s3: Any) -> None:
        keys = self.expected.keys
        if not keys:
            return
        key = self._dice.choice(keys)
        judgement = self.expected.judge(key, found_at(s3, key))
        if judgement != "right":
            self.wrong.append(f"{key}: {judgement}")


def found_at(s3: Any, key: str) -> str:
    """Return the digest of what a key has."""
    try:
        return digest_of(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    except ClientError as error:
        if code_of(error) == (404, "NoSuchKey"):
            return ABSENT
        raise


def check_all(s3: Any, clients: Sequence[Client]) -> tuple[int, list[str]]:
    """Read every key; return how many objects had to be there, and what is wrong."""
    sure, wrong = 0, list[str]()
    for client in clients:
        for key in client.expected.keys:
            sure += client.expected.is_sure(key)
            try:
                judgement = client.expected.judge(key, found_at(s3, key))
            except (BotoCoreError, ClientError) as error:
                judgement = f"cannot be read: {error}"
            if judgement != "right":
                wrong.append(f"{key}: {judgement}")
    return sure, wrong
