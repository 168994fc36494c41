"""Serving physics: exact bytes of weights and cache, layouts, batching and queueing."""

import msgspec
import numpy as np
import pytest

from tenfold.facts.loader import load_catalogue
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import Served, UnderLoad, under_load
from tenfold.physics.serving.devices import serving_devices
from tenfold.physics.serving.engines import (
    calibration_factor,
    catalog_of,
    efficiency_of,
    release_number,
    resolve,
)
from tenfold.physics.serving.kv_cache import (
    ReplicaLayout,
    Widths,
    kv_bytes_per_sequence,
    kv_bytes_per_token,
    weights_bytes_per_gpu,
)
from tenfold.physics.serving.precision import precision_widths
from tenfold.physics.serving.serve import RequestedLoad, estimate
from tenfold.physics.serving.shapes import Shapes, parameters, serving_shapes

CATALOGUE = load_catalogue()
ENGINES = catalog_of(CATALOGUE.engines)
H100 = "H100-80G-SXM"


def one(value: float) -> Floats:
    return np.array([float(value)])


def shape(model: str) -> Shapes:
    return serving_shapes([CATALOGUE.models.get(model).shape])


def layout(tp: float = 1, pp: float = 1, dp: float = 1) -> ReplicaLayout:
    return ReplicaLayout(one(tp), one(pp), one(dp))


def widths(dense: float = 1, expert: float = 1, cache: float = 1) -> Widths:
    return Widths(one(dense), one(expert), one(cache))


def ask(
    model: str = "Llama 3.1 70B",
    accelerator: str = H100,
    engine: str | None = "TensorRT-LLM 0.17",
    mode: str = "max-throughput",
    precision: str = "fp8",
    **numbers_asked: float,
) -> tuple[Served, ReplicaLayout]:
    values = {"tp": 4.0, "input_tokens": 1000.0, "output_tokens": 1000.0} | numbers_asked
    names = (
        *("tp", "pp", "attention_dp", "input_tokens", "output_tokens", "batch", "qps"),
        *("requests", "length_cv"),
    )
    columns = {name: one(values.get(name, np.nan)) for name in names}
    asked = RequestedLoad(**columns, mode=np.array([mode]), precision=(precision,))
    part = CATALOGUE.accelerators.get(accelerator)
    profile = resolve(ENGINES, engine, part.name)
    return estimate(asked, shape(model), serving_devices([part]), [profile])


def served(**asked: object) -> dict[str, float]:
    found, _ = ask(**asked)  # pyright: ignore[reportArgumentType]
    load = under_load(found)
    values = {
        name: float(getattr(found, name)[0]) for name in Served.__slots__ if name != "under_load"
    }
    return values | {name: float(getattr(load, name)[0]) for name in UnderLoad.__slots__}


def test_cache_bytes_are_exact_for_grouped_queries():
    found = kv_bytes_per_token(shape("Llama 3.1 70B"), widths(cache=2), layout())
    assert found[0] == 2 * 2 * 8 * 128 * 80
    assert found[0] == CATALOGUE.models.get("Llama 3.1 70B").shape.kv_bytes_per_token


def test_cache_bytes_are_exact_for_latents_and_tensor_ranks_hold_the_whole_latent():
    for tp in (1, 8):
        found = kv_bytes_per_token(shape("DeepSeek V3"), widths(cache=2), layout(tp=tp))
        assert found[0] == 2 * (512 + 64) * 61


@pytest.mark.parametrize(("tp", "heads"), [(1, 8), (2, 4), (8, 1), (16, 1)])
def test_tensor_ranks_split_the_cache_until_each_has_one_head(tp: int, heads: int):
    found = kv_bytes_per_token(shape("Llama 3.1 70B"), widths(), layout(tp=tp))
    assert found[0] == 2 * heads * 128 * 80


def test_pipeline_stages_split_the_cache_by_layers_and_the_fullest_counts():
    found = kv_bytes_per_token(shape("Llama 3.1 405B"), widths(), layout(pp=4))
    assert found[0] == 2 * 8 * 128 * 32  # 126 layers over 4 stages


def test_local_layers_hold_no_more_than_their_window():
    model = shape("GPT-OSS 120B")
    full = kv_bytes_per_token(model, widths(), layout())[0]
    found = kv_bytes_per_sequence(model, widths(), layout(), one(10_000))[0]
    assert found == full * (0.5 * 10_000 + 0.5 * 128)


@pytest.mark.parametrize(
    "model", ["Llama 3.1 8B", "Llama 3.1 70B", "Mixtral 8x7B", "DeepSeek V3", "Qwen3 235B-A22B"]
)
def test_parameters_match_the_published_counts(model: str):
    published = CATALOGUE.models.get(model).params_b
    assert parameters(shape(model))[0] / 1e9 == pytest.approx(published, rel=0.01)


def test_weights_shrink_with_ranks_stages_and_precision():
    model = shape("Llama 3.1 70B")

    def gib(precision: str, tp: float = 1, pp: float = 1) -> float:
        width = precision_widths([precision], model).widths
        return float(weights_bytes_per_gpu(model, width, layout(tp, pp))[0]) / 2**30

    assert gib("bf16") == pytest.approx(2 * 70.55e9 / 2**30, rel=0.005)
    assert gib("bf16", tp=4) == pytest.approx(gib("bf16") / 4)
    assert gib("bf16", pp=4) == pytest.approx(gib("bf16") / 4, rel=0.05)
    assert gib("bf16") > gib("fp8") > gib("fp4") > gib("bf16") / 4  # tables stay in 16 bit


def test_natively_quantised_experts_stay_in_four_bits_whatever_is_asked():
    model = shape("GPT-OSS 120B")
    assert precision_widths(["bf16"], model).widths.expert_bytes[0] < 0.6
    assert precision_widths(["fp8"], model).widths.kv_bytes[0] == 2


def test_70b_in_16_bit_needs_two_h100_and_in_8_bit_one():
    assert not served(tp=1, precision="bf16")["fits"]
    assert served(tp=2, precision="bf16")["fits"]
    assert served(tp=1, precision="fp8", input_tokens=128, output_tokens=128)["fits"]


def test_the_fewest_ranks_that_hold_the_weights_are_chosen():
    assert ask(tp=np.nan, precision="bf16")[1].gpus[0] == 2
    assert ask(model="Llama 3.1 8B", tp=np.nan, precision="bf16")[1].gpus[0] == 1


def test_newer_engines_spread_experts_with_data_parallel_attention():
    _, spread = ask(model="Qwen3 235B-A22B", engine="TensorRT-LLM 1.1", tp=8)
    _, plain = ask(model="Qwen3 235B-A22B", engine="TensorRT-LLM 0.21", tp=8)
    assert (spread.tp[0], spread.attention_dp[0]) == (1, 8)
    assert (plain.tp[0], plain.attention_dp[0]) == (8, 1)


def test_more_tensor_ranks_are_faster_but_less_than_in_proportion():
    rates = [served(tp=tp)["output_tokens_per_s"] for tp in (2, 4, 8)]
    assert rates[0] < rates[1] < rates[2] < 4 * rates[0]


def test_a_pipeline_adds_cache_but_not_speed_to_a_single_prompt():
    alone, staged = (served(mode="first-token", tp=2, pp=pp) for pp in (1, 4))
    assert staged["ttft_s"] > alone["ttft_s"]
    assert served(tp=2, pp=4)["batch"] > served(tp=2, pp=1)["batch"]


def test_a_quantised_variant_serves_more():
    rates = [served(precision=name)["output_tokens_per_s"] for name in ("bf16", "fp8")]
    assert rates[0] < rates[1]
    blackwell = {"accelerator": "B200-SXM", "engine": "TensorRT-LLM 1.0"}
    rates = [served(precision=p, **blackwell)["output_tokens_per_s"] for p in ("fp8", "fp4")]
    assert rates[0] < rates[1]


def test_latency_rises_with_load_and_throughput_follows_it_until_saturation():
    loads = (0.5, 1.0, 2.0, 4.0, 8.0)
    answers = [served(mode="online", engine="something new", qps=qps) for qps in loads]
    for name in ("ttft_s", "tpot_s", "batch"):
        values = [answer[name] for answer in answers]
        assert values == sorted(values)
    for qps, answer in zip(loads, answers, strict=True):
        assert answer["output_tokens_per_s"] <= qps * 1000 * 1.001


def test_an_endless_stream_above_saturation_never_sees_its_first_token():
    answer = served(mode="online", engine="something new", qps=10_000)
    assert answer["saturated"] == 1
    assert answer["ttft_s"] == np.inf
    beyond = served(mode="online", engine="something new", qps=20_000)
    assert beyond["output_tokens_per_s"] == answer["output_tokens_per_s"]


def test_more_clients_of_a_closed_loop_wait_longer_and_get_more_together():
    few, many = (served(mode="online", engine="vllm 0.18", batch=n) for n in (4, 64))
    assert few["tpot_s"] < many["tpot_s"]
    assert few["ttft_s"] < many["ttft_s"]
    assert few["output_tokens_per_s"] < many["output_tokens_per_s"]


def test_an_overload_is_said_to_last_unless_the_run_has_a_stated_end():
    tables = {"mode": "online", "engine": "TensorRT-LLM 0.17", "qps": 1_000}
    lasting, run = served(**tables), served(**tables, requests=500)
    assert (lasting["overloaded"], run["overloaded"]) == (1, 1)
    assert lasting["ttft_s"] == lasting["ttft_p50_s"] == lasting["in_system"] == np.inf
    assert 0.2 < run["ttft_s"] < np.inf
    twice = served(**tables, requests=1_000)
    assert twice["ttft_s"] > run["ttft_s"]


def test_clients_beyond_the_slots_wait_for_the_rest_of_their_turn():
    slots = served(mode="online", engine="vllm 0.18", batch=1_000_000)["batch"]
    alone, beyond = (served(mode="online", engine="vllm 0.18", batch=n * slots) for n in (1, 3))
    turn_s = slots / beyond["served_qps"]
    assert beyond["ttft_s"] - alone["ttft_s"] == pytest.approx(2 * turn_s, rel=0.01)
    assert beyond["queued"] == pytest.approx(2 * slots)
    assert beyond["saturated"]
    assert not alone["saturated"]


def test_requests_of_one_length_share_steps_and_those_of_mixed_lengths_do_not():
    waits = [
        served(mode="online", engine="vllm 0.18", batch=64, **cv)["ttft_s"]
        for cv in ({"length_cv": 0.3}, {}, {"length_cv": 0.0})
    ]
    assert waits == sorted(waits)
    assert waits[0] < 0.7 * waits[2]


def test_a_run_that_starts_all_clients_at_once_waits_longer_the_shorter_it_is():
    waits = [
        served(mode="online", engine="vllm 0.18", batch=64, requests=requests)["ttft_s"]
        for requests in (64_000, 640, 128)
    ]
    assert waits == sorted(waits)


def test_quantiles_surround_the_mean_and_grow():
    answer = served(mode="online", engine="vllm 0.18", qps=3)
    tails = [answer[f"ttft_p{share}_s"] for share in (50, 90, 99)]
    assert tails[0] < answer["ttft_s"] < tails[2]
    assert tails == sorted(tails)
    assert answer["ttft_goal_s"] == pytest.approx(tails[2])
    assert answer["tpot_s"] <= answer["tpot_p90_s"] <= answer["tpot_p99_s"]


def test_a_stated_batch_caps_a_flat_out_run():
    assert served(batch=16)["batch"] == 16
    assert served(batch=16)["output_tokens_per_s"] < served()["output_tokens_per_s"]


def test_a_static_batch_beyond_the_cache_runs_in_turns():
    room = served(mode="static-batch")["batch"]
    inside, beyond = (served(mode="static-batch", batch=n * room) for n in (1, 4))
    assert beyond["output_tokens_per_s"] == pytest.approx(inside["output_tokens_per_s"])
    assert beyond["memory_bytes"] == inside["memory_bytes"]


@pytest.mark.parametrize(
    "name", ["TensorRT-LLM 0.17", "trtllm-0.17", "trtllm@0.17.0", "TensorRT-LLM+Triton 0.17"]
)
def test_engine_names_of_all_sources_resolve(name: str):
    assert resolve(ENGINES, name, H100).notes == ()


def test_what_is_less_known_gets_a_note_and_a_wider_interval():
    known = resolve(ENGINES, "TensorRT-LLM 0.17", H100)
    for engine, accelerator in (
        ("brand-new 2", H100),
        ("TensorRT-LLM 0.19", H100),
        ("TensorRT-LLM 0.17", "MI300X"),
    ):
        other = resolve(ENGINES, engine, accelerator)
        assert len(other.notes) == 1
        assert other.sigma["max-throughput"] > known.sigma["max-throughput"]


def test_an_unseen_release_lies_between_its_neighbours():
    low, middle, high = (
        resolve(ENGINES, f"trtllm {version}", H100).values["layer_floor_s"]
        for version in ("0.14", "0.15", "0.17")
    )
    assert min(low, high) < middle < max(low, high)


def test_releases_are_ordered_as_numbers_not_as_text():
    versions = ["0.8", "0.9", "0.14", "0.17.0", "1.0.0rc3", "1.1"]
    found = [release_number(version) or 0.0 for version in versions]
    assert found == sorted(found)
    assert release_number("main") is None


def test_calibration_moves_towards_what_was_observed_and_further_with_more_rows():
    once = calibration_factor(one(1.2), one(1.0))
    thrice = calibration_factor(np.full(3, 1.2), np.ones(3))
    assert 1.0 < once < thrice < 1.2


def test_a_profile_scaled_by_two_is_faster_in_rates_and_floors():
    profile = efficiency_of([resolve(ENGINES, "trtllm 0.17", H100)])
    scaled = profile.scaled(one(2.0))
    assert scaled.compute == 2 * profile.compute
    assert scaled.layer_floor_s == profile.layer_floor_s / 2


def test_a_part_without_measured_ceilings_runs_on_its_datasheet():
    part = CATALOGUE.accelerators.get(H100)
    bare = msgspec.structs.replace(part, bf16_matmul_tflops=None, fp8_matmul_tflops=None)
    found = serving_devices([bare])
    assert 0.7 < found.ceiling_16_flops[0] / (part.training_tflops * 1e12) < 0.9
    assert found.ceiling_16_flops <= found.ceiling_8_flops
    assert found.ceiling_8_flops <= found.ceiling_4_flops
