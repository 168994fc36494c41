from pathlib import Path

import pytest

from tenfold.files.tiers import read_tiers
from tenfold.model.errors import InvalidFile

GOOD = """\
[tiers.hot]
replicas = 2

[[tiers.hot.backends]]
name = "nvme0"
directory = "disks/nvme0"
domain = "node-a"

[[tiers.hot.backends]]
name = "nvme1"
directory = "/mnt/nvme1"
domain = "node-b"
weight = 2.5

[tiers.cold]
erasure = "2+1"

[[tiers.cold.backends]]
name = "c0"
url = "s3://bucket/c0"
options = { endpoint = "http://127.0.0.1:1" }

[[tiers.cold.backends]]
name = "c1"
url = "s3://bucket/c1"

[[tiers.cold.backends]]
name = "c2"
url = "s3://bucket/c2"
"""


def test_a_tier_file_is_read(tmp_path: Path):
    path = tmp_path / "tiers.toml"
    path.write_text(GOOD)
    file = read_tiers(path)
    assert [name for name, _ in file.ordered()] == ["hot", "cold"]
    hot, cold = file.tiers["hot"], file.tiers["cold"]
    assert (hot.data_shards, hot.parity_shards, hot.shards) == (1, 1, 2)
    assert (cold.data_shards, cold.parity_shards, cold.shards) == (2, 1, 3)
    assert hot.backends[0].directory == str(tmp_path / "disks" / "nvme0")
    assert hot.backends[1].weight == 2.5
    assert [one.failure_domain for one in hot.backends] == ["node-a", "node-b"]
    assert cold.backends[0].failure_domain == "c0"


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("replicas = 2\n", "", 1, "tier `hot` has neither of `replicas` and `erasure`"),
        ('erasure = "2+1"', 'erasure = "2"', 16, "erasure"),
        ("[tiers.cold]", "[tiers.lukewarm]", 15, "`lukewarm` is not the name of a tier"),
        ('domain = "node-b"', 'domain = "node-a"', 1, "tier `hot` places 2 shards of each blob"),
        ('name = "nvme1"', 'name = "nvme0"', 9, "two backends have the name `nvme0`"),
        ('name = "nvme1"', 'name = "a,b"', 10, "name"),
        ("s3://bucket/c1", "s3://bucket/c2", 27, "two backends have the place `s3://bucket/c2`"),
        ('url = "s3://bucket/c1"\n', "", 23, "backend `c1` has neither of `directory` and `url`"),
        ("weight = 2.5", "weight = 0", 13, "weight"),
        ("weight = 2.5", "wieght = 2.5", 13, "wieght"),
        (
            'domain = "node-a"',
            'options = { a = "b" }',
            7,
            "has `options`, which only a `url` takes",
        ),
    ],
)
def test_an_error_names_its_line(tmp_path: Path, old: str, new: str, line: int, message: str):
    assert old in GOOD
    path = tmp_path / "tiers.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(InvalidFile) as caught:
        read_tiers(path)
    assert message in caught.value.message
    assert caught.value.line == line
    assert caught.value.hint
