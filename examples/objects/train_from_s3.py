"""Train from object storage: stream a data set, and commit checkpoints that are whole or absent.

    python train_from_s3.py --endpoint http://127.0.0.1:9000 --bucket data --steps 20

Keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. The data set is the objects under
`train/`, one JSON record a line. Any S3 server with conditional writes will do.
"""

import argparse
import hashlib
import io
import json
import random
import secrets

import boto3
import torch
from botocore.exceptions import ClientError
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

MANIFEST = "manifest.json"


def connect(endpoint):
    """Return a client. Call it in the process that uses it: connections do not survive a fork."""
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")


def keys_under(s3, bucket, prefix):
    """Return all keys under a prefix, in order."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [one["Key"] for page in pages for one in page.get("Contents", [])]


class Shards(IterableDataset):
    """Records of all shards under a prefix, streamed; each worker of each rank reads its share.

    The order of shards depends on the seed and the epoch alone, so a restart reads the same.
    """

    def __init__(self, endpoint, bucket, prefix, *, seed=0, rank=0, ranks=1):
        self.endpoint, self.bucket, self.prefix = endpoint, bucket, prefix
        self.seed, self.rank, self.ranks = seed, rank, ranks
        self.epoch = 0

    def __iter__(self):
        worker = get_worker_info()
        workers, number = (1, 0) if worker is None else (worker.num_workers, worker.id)
        s3 = connect(self.endpoint)
        keys = keys_under(s3, self.bucket, self.prefix)
        random.Random(f"{self.seed}/{self.epoch}").shuffle(keys)
        for key in keys[self.rank * workers + number :: self.ranks * workers]:
            for line in s3.get_object(Bucket=self.bucket, Key=key)["Body"].iter_lines():
                record = json.loads(line)
                yield torch.tensor(record["x"]), torch.tensor(record["y"])


class Checkpoints:
    """Checkpoints under a prefix. One is there when its manifest is; the manifest comes last."""

    def __init__(self, s3, bucket, prefix="checkpoints"):
        self.s3, self.bucket, self.prefix = s3, bucket, prefix

    def save(self, step, files):
        """Write files by name and commit them; False if another writer has committed this step.

        A writer that dies before the manifest leaves files that no reader looks at.
        """
        writer, listed = secrets.token_hex(8), {}
        for name, data in files.items():
            key = f"{self.prefix}/files/{step:09}-{writer}/{name}"
            self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)
            listed[name] = {"key": key, "sha256": hashlib.sha256(data).hexdigest()}
        return self.commit(step, listed)

    def commit(self, step, listed):
        """Write the manifest where there is none: of two writers of a step, one wins."""
        try:
            self.s3.put_object(
                Bucket=self.bucket,
                Key=f"{self.prefix}/{step:09}/{MANIFEST}",
                Body=json.dumps(listed).encode(),
                IfNoneMatch="*",
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "PreconditionFailed":
                return False
            raise
        return True

    def steps(self):
        """Return the steps that are committed, in order."""
        ends = f"/{MANIFEST}"
        keys = keys_under(self.s3, self.bucket, f"{self.prefix}/")
        return [int(key.split("/")[-2]) for key in keys if key.endswith(ends)]

    def load(self, step):
        """Return the files of a step by name, checked against the manifest."""
        listed = json.loads(self._read(f"{self.prefix}/{step:09}/{MANIFEST}"))
        files = {}
        for name, one in listed.items():
            files[name] = self._read(one["key"])
            if hashlib.sha256(files[name]).hexdigest() != one["sha256"]:
                raise OSError(f"checkpoint {step}: `{name}` is not what was saved")
        return files

    def _read(self, key):
        return self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()


def main():
    """Train a small model, from its last checkpoint on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--bucket", required=True)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--every", type=int, default=5, help="steps between two checkpoints")
    parser.add_argument("--workers", type=int, default=0, help="processes that read")
    asked = parser.parse_args()
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    checkpoints, step = Checkpoints(connect(asked.endpoint), asked.bucket), 0
    if committed := checkpoints.steps():
        step = committed[-1]
        state = torch.load(io.BytesIO(checkpoints.load(step)["model.pt"]))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        print(f"continues at step {step}")
    shards = Shards(asked.endpoint, asked.bucket, "train/")
    while step < asked.steps:
        shards.epoch += 1
        for x, y in DataLoader(shards, batch_size=8, num_workers=asked.workers):
            loss = torch.nn.functional.mse_loss(model(x).squeeze(1), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % asked.every == 0:
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                buffer = io.BytesIO()
                torch.save(state, buffer)
                is_ours = checkpoints.save(step, {"model.pt": buffer.getvalue()})
                print(f"step {step}: loss {loss.item():.4f}, {'saved' if is_ours else 'was there'}")
            if step == asked.steps:
                return


if __name__ == "__main__":
    main()
