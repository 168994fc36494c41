from pathlib import Path

import pytest

from tenfold.files.accesses import read_accesses
from tenfold.model.errors import InputError
from tenfold.sim.storage.tier_replay import Speed
from tenfold.study.tiering.compare import TierPrice, compare

TRACE = Path(__file__).parents[4] / "examples" / "objects" / "training-epochs.csv"
FAST = TierPrice(Speed(45e9, 0.0005), 3.6)
SLOW = TierPrice(Speed(11e9, 0.015), 1.12)


def test_epochs_cost_less_than_all_flash_and_wait_less_than_lru():
    flash, lru, prefetch, ours = compare(read_accesses(TRACE), FAST, SLOW, 60 * 10**9)
    assert [one.policy for one in (flash, lru, prefetch, ours)] == [
        "all-flash", "lru", "lru-prefetch", "epoch-aware"
    ]  # fmt: skip
    assert flash.stall_s == 0
    assert ours.usd_per_month < flash.usd_per_month
    assert ours.usd_per_month == lru.usd_per_month
    assert ours.stall_s < prefetch.stall_s < lru.stall_s
    assert ours.slow_tb < lru.slow_tb


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("key,op\n", 1, "the column `size_bytes` is missing"),
        ("key,size_bytes,op,epoch,compute_s\n", 1, "no accesses"),
        ("key,size_bytes,op,epoch,compute_s\na,1,read,0,1\nb,1,look,0,1\n", 3, "`op` is `look`"),
        ("key,size_bytes,op,epoch,compute_s\na,1.5,read,0,1\n", 2, "1.5"),
        ("key,size_bytes,op,epoch,compute_s\na,5,read,0\n", 2, "cannot be used"),
        ("key,size_bytes,op,epoch,compute_s\na,0,read,0,1\n", 2, "size above 0"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(tmp_path: Path, text: str, line: int, message: str):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_accesses(path)
    assert message in caught.value.message
    assert caught.value.line == line
