"""The contract of `estimate serve`: order, notes, nulls, and rows that cannot be."""

import csv
import math
from pathlib import Path
from statistics import median

import msgspec
import pytest

from tenfold.facts.loader import load_catalogue
from tenfold.model.estimate import NoEstimate, ServeEstimate, ServeRow, ShapeRow
from tenfold.study.estimate.serve import estimate_serve

CATALOGUE = load_catalogue()
TABLES = Path(__file__).parents[5] / "shared" / "published" / "published_inference.csv"
KEYS = {"id", "output_tokens_per_s", "ttft_s", "tpot_s", "batch", "memory_gib", "fits"}


def row(**fields: object) -> ServeRow:
    base = {
        "id": "a",
        "model": "Llama 3.1 70B",
        "accelerator": "H100-80G-SXM",
        "tp": 4,
        "precision": "fp8",
        "engine": "TensorRT-LLM 0.17",
        "input_tokens": 1000,
        "output_tokens": 1000,
    }
    return ServeRow(**{**base, **fields})  # pyright: ignore


def answer(**fields: object) -> ServeEstimate:
    [found] = estimate_serve([row(**fields)], CATALOGUE)
    assert isinstance(found, ServeEstimate)
    return found


def width(found: ServeEstimate) -> float:
    low, high = found.interval_tokens_per_s
    return high / low


def test_an_answer_has_the_keys_of_the_contract():
    found = answer()
    assert set(msgspec.to_builtins(found)) >= KEYS
    assert isinstance(found.fits, bool)
    assert isinstance(found.batch, int)


def test_answers_keep_the_order_of_rows_with_faulty_ones_in_their_place():
    rows = [
        row(id=3),
        row(id="x", model="no such model"),
        row(id=1.5, mode="first-token"),
        row(id="y", accelerator="no such part"),
        row(id=0, mode="online", qps=1.0),
    ]
    found = estimate_serve(rows, CATALOGUE)
    assert [one.id for one in found] == [3, "x", 1.5, "y", 0]
    assert [isinstance(one, NoEstimate) for one in found] == [False, True, False, True, False]


def test_a_faulty_row_changes_no_other():
    alone = answer()
    beside = estimate_serve([row(model="no such model"), row()], CATALOGUE)[1]
    assert beside == alone


@pytest.mark.parametrize("field", ["model", "accelerator"])
def test_an_unknown_name_gives_an_id_and_an_error_and_nothing_else(field: str):
    [found] = estimate_serve([row(id=7, **{field: "H-thousand"})], CATALOGUE)
    assert isinstance(found, NoEstimate)
    assert list(msgspec.to_builtins(found)) == ["id", "error"]
    assert found.id == 7
    assert "`H-thousand`" in found.error


def test_no_rows_give_no_answers():
    assert estimate_serve([], CATALOGUE) == []


def test_an_unknown_engine_is_answered_with_a_note_and_a_wider_interval():
    known, unknown = answer(), answer(engine="brand-new 3")
    assert known.notes == ()
    assert any("brand-new 3" in note for note in unknown.notes)
    assert width(unknown) > width(known)


def test_an_engine_that_is_not_said_is_answered():
    assert answer(engine=None).notes


def test_what_is_null_is_chosen():
    found = answer(tp=None, pp=None, precision=None, mode=None, batch=None, qps=None)
    assert found.gpus == 2  # 70B in 16 bit, the fewest ranks that hold it
    assert found.fits is True
    assert found.output_tokens_per_s == answer(tp=2, precision="bf16").output_tokens_per_s


def test_a_shape_is_answered_as_its_preset():
    shape = CATALOGUE.models.get("Llama 3.1 70B").shape
    names = ("layers", "hidden", "heads", "kv_heads", "ffn", "gated", "vocab", "head_dim")
    widths = ShapeRow(**{name: getattr(shape, name) for name in names})
    assert answer(model=widths) == answer()


def test_names_are_accepted_in_any_spelling():
    assert answer(accelerator="h100_sxm", model="llama-3.1-70b") == answer()


def test_the_rate_is_of_the_whole_replica():
    assert answer(tp=8).gpus == 8
    ratio = answer(tp=8).output_tokens_per_s / answer().output_tokens_per_s
    assert 1.2 < ratio < 4


def test_a_load_above_what_a_replica_sustains_is_noted():
    light = answer(mode="online", qps=0.5)
    heavy = answer(mode="online", qps=5000.0)
    assert light.notes == ()
    assert light.under_load is not None
    assert not light.under_load.overloaded
    assert heavy.under_load is not None
    assert heavy.under_load.overloaded
    assert heavy.ttft_s is heavy.under_load.in_system is heavy.under_load.ttft_s_p50 is None
    (note,) = heavy.notes
    assert note.startswith("overloaded: 5000 requests/s offered, capacity ")
    assert "TTFT by" in note


def test_clients_that_find_no_slot_are_counted():
    crowd = answer(mode="online", batch=1_000_000)
    assert "of 1,000,000 clients wait for one of" in crowd.notes[0]
    assert answer(mode="online", batch=4).notes == ()


def test_only_an_online_row_is_under_load():
    assert answer(mode="first-token").under_load is None


def test_a_flood_says_how_many_requests_it_has():
    assert answer(mode="online").notes == ("all requests are sent at once: 500 requests",)
    assert "9,000 requests" in answer(mode="online", requests=9_000).notes[0]


def test_an_endless_wait_is_null_and_every_answer_is_json():
    found = answer(mode="online", qps=5000.0, engine="brand-new 3")
    assert found.ttft_s is None
    assert msgspec.json.decode(msgspec.json.encode(found))["ttft_s"] is None


def test_experts_over_data_parallel_attention_are_noted():
    found = answer(model="Qwen3 235B-A22B", engine="TensorRT-LLM 1.1", tp=8)
    assert found.notes == ("expert parallelism over 8 GPUs, data-parallel attention",)


def test_a_fixed_batch_that_the_cache_does_not_hold_is_noted():
    small = answer(mode="static-batch", batch=8)
    large = answer(mode="static-batch", batch=100_000)
    assert small.notes == ()
    assert large.notes == (
        "the batch does not fit in the KV cache at once and runs in several passes",
    )
    assert answer(mode="static-batch").notes == ()


def test_what_does_not_fit_says_so():
    found = answer(tp=1, precision="bf16")
    assert found.fits is False
    assert found.memory_gib > 80


def test_a_request_without_output_still_gets_its_first_token():
    found = answer(output_tokens=0)
    assert math.isfinite(found.output_tokens_per_s)
    assert found.notes == ("one output token per request assumed",)
    assert answer(output_tokens=1) == msgspec.structs.replace(found, notes=())


@pytest.mark.skipif(
    not TABLES.exists(), reason="the published tables are not beside the repository"
)
@pytest.mark.parametrize(
    ("start", "mode", "percent"),
    [("off", "max-throughput", 5), ("sta", "static-batch", 5), ("fir", "first-token", 5)],
)
def test_published_rows_are_answered_within_a_few_percent(start: str, mode: str, percent: float):
    with TABLES.open(newline="") as stream:
        cells = [one for one in csv.DictReader(stream) if one["mode"].startswith(start)]
    found = estimate_serve([published(one, mode) for one in cells], CATALOGUE)
    off = [
        abs((answer.ttft_s or 0.0) / float(one["ttft_ms"]) * 1e3 - 1)
        if mode == "first-token"
        else abs(answer.output_tokens_per_s / float(one["out_tok_s_total"]) - 1)
        for answer, one in zip(found, cells, strict=True)
        if isinstance(answer, ServeEstimate)
    ]
    assert median(off) * 100 < percent


def published(cells: dict[str, str], mode: str) -> ServeRow:
    def whole(name: str) -> int | None:
        return int(float(cells[name])) if cells[name] else None

    return row(
        id=cells["row_id"],
        model=cells["model"],
        accelerator=cells["accelerator"],
        tp=(whole("tp") or 1) * (whole("attn_dp") or 1),
        pp=whole("pp"),
        precision=cells["precision"].lower(),
        engine=f"{cells['engine']} {cells['engine_version']}",
        input_tokens=whole("isl"),
        output_tokens=whole("osl"),
        mode=mode,
        batch=whole("batch"),
    )


def test_tensor_parallelism_across_nodes_pays_for_the_network_and_says_so():
    inside, across = answer(tp=8, batch=16), answer(tp=16, batch=16)
    rack = answer(tp=16, batch=16, accelerator="GB200")
    assert across.output_tokens_per_s < inside.output_tokens_per_s
    assert any("tensor parallelism over 2 nodes" in note for note in across.notes)
    assert not any("nodes" in note for note in (*inside.notes, *rack.notes))
