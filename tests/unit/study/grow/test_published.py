"""The benchmark on published series asks the law that `grow` asks, and says when it cannot."""

import pytest
from msgspec.structs import replace

import growth_builders as made
from benchmarks.grow import published
from tenfold.model.estimate import TrainEstimate, TrainRow
from tenfold.study.estimate.train import estimate_train

SMALL = TrainRow(
    id="small",
    model="llama-3-8b",
    accelerator="H100",
    gpus=16,
    seq=4096,
    micro_batch=1,
    global_batch=128,
    tp=2,
    stack="megatron-core",
    step_s=6.0,
)
TOP = replace(SMALL, id="top", gpus=128, global_batch=1024, step_s=5.0)


def test_what_is_kept_comes_from_the_law_and_never_from_the_step_at_the_top():
    kept = published.kept_at([SMALL], TOP, made.catalogue())
    asked = [replace(row, step_s=None) for row in (SMALL, TOP)]
    small, top = (
        answer.tokens_per_s_per_gpu
        for answer in estimate_train(asked, made.catalogue(), [SMALL])
        if isinstance(answer, TrainEstimate)
    )
    assert kept.by_law == pytest.approx(top / small)
    assert kept.by_curve == pytest.approx(kept.by_law)
    assert published.kept_at([SMALL], replace(TOP, step_s=50.0), made.catalogue()) == kept


def test_without_the_rows_there_is_a_reason_and_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(published, "missing", lambda: "no rows")
    assert published.run({}) == []
    assert capsys.readouterr().out == "not run: no rows\n"
