"""Latency under load: Little's law at every load, no bound at the capacity, and agreement with an
engine simulated step by step.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenfold.facts.loader import load_catalogue
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import Served, under_load
from tenfold.physics.serving.devices import serving_devices
from tenfold.physics.serving.engines import catalog_of, resolve
from tenfold.physics.serving.queueing import Service, capacity_qps, closed_loop, open_loop
from tenfold.physics.serving.serve import RequestedLoad, estimate
from tenfold.physics.serving.shapes import serving_shapes
from tests.rigs.batching_engine import AffineSteps, Engine, Measured

CATALOGUE = load_catalogue()
ENGINES = catalog_of(CATALOGUE.engines)
CASES = 10_000
MODELS = ("Llama 3.1 8B", "Llama 3.1 70B", "Mixtral 8x7B", "DeepSeek V3", "GPT-OSS 120B")
PARTS = ("A100-80G-SXM", "H100-80G-SXM", "H200-141G-SXM", "B200-SXM", "L40S", "MI300X")
NAMES = ("TensorRT-LLM 0.17", "TensorRT-LLM 1.1", "vllm 0.18", "sglang 0.5", None)
SIMULATED = 16


@dataclass(frozen=True)
class Cases:
    """Random services; `of` puts them under a load."""

    random: np.random.Generator
    count: int

    def services(self) -> "Services":
        pick, count = self.random.choice, self.count
        engines = pick(len(NAMES), count).tolist()
        known = {(name, part): resolve(ENGINES, name, part) for name in NAMES for part in PARTS}
        parts = [CATALOGUE.accelerators.get(name) for name in pick(PARTS, count).tolist()]
        return Services(
            shapes=serving_shapes(
                [CATALOGUE.models.get(name).shape for name in pick(MODELS, count).tolist()]
            ),
            devices=serving_devices(parts),
            profiles=[known[NAMES[at], part.name] for at, part in zip(engines, parts, strict=True)],
            tp=pick([1.0, 2.0, 4.0, 8.0], count),
            pp=pick([1.0, 1.0, 1.0, 2.0, 4.0], count),
            input_tokens=np.round(_log_uniform(self.random, 1, 32_768, count)),
            output_tokens=np.round(_log_uniform(self.random, 1, 4_096, count)),
            precision=tuple(pick(["bf16", "fp8"], count).tolist()),
        )


@dataclass(frozen=True)
class Services:
    shapes: object
    devices: object
    profiles: list[object]
    tp: Floats
    pp: Floats
    input_tokens: Floats
    output_tokens: Floats
    precision: tuple[str, ...]

    def under(self, qps: Floats, clients: Floats) -> Served:
        asked = RequestedLoad(
            tp=self.tp,
            pp=self.pp,
            attention_dp=np.full_like(self.tp, np.nan),
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            batch=clients,
            qps=qps,
            mode=np.full(len(self.tp), "online"),
            precision=self.precision,
            requests=np.full_like(self.tp, np.inf),
        )
        return estimate(asked, self.shapes, self.devices, self.profiles)[0]  # pyright: ignore[reportArgumentType]

    def capacity(self) -> Floats:
        none = np.full_like(self.tp, np.nan)
        return under_load(self.under(np.full_like(none, 1e-3), none)).capacity_qps


def _log_uniform(random: np.random.Generator, low: float, high: float, count: int) -> Floats:
    return np.exp(random.uniform(np.log(low), np.log(high), count))


def _response_s(services: Services, served: Served) -> Floats:
    later = np.maximum(services.output_tokens - 1.0, 0.0)
    return served.ttft_s + later * np.where(later > 0, served.tpot_s, 0.0)


def test_littles_law_holds_for_10_000_random_services_and_loads():
    random = np.random.default_rng(22)
    services = Cases(random, CASES).services()
    capacity = services.capacity()
    closed = random.random(CASES) < 0.5
    clients = np.where(closed, np.round(_log_uniform(random, 1, 4_096, CASES)), np.nan)
    qps = np.where(closed, np.nan, capacity * random.uniform(0.001, 1.5, CASES))
    served = services.under(qps, clients)
    load = under_load(served)
    response_s = _response_s(services, served)
    overloaded = ~closed & (qps >= capacity)
    held = ~overloaded
    assert (closed.sum(), held.sum()) > (4_000, 7_000)
    # In system = rate * response time; in a closed loop the number is given.
    np.testing.assert_allclose(
        load.served_qps[closed] * response_s[closed], clients[closed], rtol=1e-6
    )
    steady = held & ~closed
    np.testing.assert_allclose(
        load.in_system[steady], load.served_qps[steady] * response_s[steady], rtol=1e-9
    )
    np.testing.assert_allclose(load.served_qps[steady], qps[steady], rtol=1e-12)
    # What runs is the rate times the time of all steps of an answer, found without the wait.
    lengths = services.output_tokens
    steps_s = served.batch / np.maximum(load.served_qps * lengths, 1e-12)
    assert (steps_s[steady] <= served.tpot_s[steady] * (1 + 1e-3) + 1e-3 / qps[steady]).all()
    # Beyond the capacity there is no steady state, and nothing small is said about it.
    assert (load.overloaded == overloaded).all()
    assert np.isinf(served.ttft_s[overloaded]).all()
    assert np.isinf(load.in_system[overloaded]).all()
    assert np.isfinite(served.ttft_s[held]).all()
    assert (load.served_qps <= capacity * (1 + 1e-9)).all()
    checked = int(closed.sum() + steady.sum() + overloaded.sum())
    print(
        f"Little's law: {checked:,} random services and loads, {closed.sum():,} closed loops, "
        f"{steady.sum():,} streams within and {overloaded.sum():,} beyond the capacity"
    )
    assert checked == CASES


def test_a_closed_loop_saturates_and_then_answers_later_by_one_turn_for_each_client():
    services = Cases(np.random.default_rng(5), 2_000).services()
    none = np.full_like(services.tp, np.nan)
    # Far beyond the slots, which a saturated loop keeps all in use.
    slots = np.maximum(services.under(none, np.full_like(none, 1e9)).batch, 1.0)
    loops = [services.under(none, np.ceil(times * slots) + 1e5) for times in (3, 5, 9)]
    rates = [under_load(one).served_qps for one in loops]
    waits = [_response_s(services, one) for one in loops]
    for rate, one in zip(rates, loops, strict=True):
        np.testing.assert_allclose(rate, under_load(one).capacity_qps, rtol=1e-9)
    more = [np.ceil(times * slots) + 1e5 for times in (3, 5, 9)]
    np.testing.assert_allclose(
        (waits[1] - waits[0]) * rates[0], more[1] - more[0], rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        (waits[2] - waits[1]) * rates[0], more[2] - more[1], rtol=1e-6, atol=1e-6
    )


def test_waits_grow_with_the_load_and_without_bound_towards_the_capacity():
    services = Cases(np.random.default_rng(6), 2_000).services()
    none = np.full_like(services.tp, np.nan)
    capacity = services.capacity()
    shares = (0.2, 0.5, 0.8, 0.95, 0.999, 1.0 - 1e-6)
    found = [services.under(capacity * share, none) for share in shares]
    for calm, busy in itertools.pairwise(found):
        assert (busy.ttft_s >= calm.ttft_s * (1 - 1e-6)).all()
        assert (busy.tpot_s >= calm.tpot_s * (1 - 1e-3)).all()
    for served in found:
        load = under_load(served)
        assert (load.ttft_p50_s <= load.ttft_p90_s).all()
        assert (load.ttft_p90_s <= load.ttft_p99_s).all()
    # A millionth below the capacity, thousands of requests wait.
    assert (under_load(found[-1]).queued > 1_000).all()
    assert np.isinf(services.under(capacity, none).ttft_s).all()


def _steps(random: np.random.Generator) -> tuple[AffineSteps, int]:
    def one(value: float) -> Floats:
        return np.array([float(value)])

    def draw(low: float, high: float) -> float:
        return float(_log_uniform(random, low, high, 1)[0])

    step_s, slots = draw(0.003, 0.03), round(draw(4, 300))
    steps = AffineSteps(
        step_s=one(step_s),
        sequence_s=one(step_s * draw(0.001, 0.03)),
        prompt_token_s=one(draw(1e-5, 2e-4)),
        input_tokens=one(round(draw(50, 6_000))),
        output_tokens=one(round(draw(20, 400))),
        budget_tokens=one(max(2_048 if random.random() < 0.5 else 8_192, 2 * slots)),
    )
    return steps, slots


def _service(steps: AffineSteps, slots: int, length_cv: float) -> Service:
    return Service(
        input_tokens=steps.input_tokens,
        output_tokens=steps.output_tokens,
        slots=np.array([float(slots)]),
        budget_tokens=steps.budget_tokens,
        outside_s=np.zeros(1),
        stages=np.ones(1),
        length_cv=np.array([length_cv]),
    )


def _off(predicted: list[float], measured: list[float]) -> NDArray[np.float64]:
    return np.abs(np.log(np.array(predicted) / np.array(measured)))


def _counts_agree(found: Measured) -> bool:
    """Whether the simulation itself obeys Little's law, with numbers counted over time."""
    return bool(abs(found.in_system / (found.served_qps * found.response_s) - 1.0) < 0.1)


def test_streams_wait_as_long_as_in_an_engine_simulated_step_by_step():
    random = np.random.default_rng(7)
    waits: list[tuple[float, float]] = []
    tokens: list[tuple[float, float]] = []
    for place in range(SIMULATED):
        steps, slots = _steps(random)
        service = _service(steps, slots, 0.12)
        qps = float(capacity_qps(steps, service)[0]) * (0.2, 0.5, 0.7, 0.85)[place % 4]
        found = Engine(steps, slots, 0.2, place).open_loop(qps, 3_000)
        closed_form = open_loop(steps, service, np.array([qps]))
        assert _counts_agree(found)
        waits.append((float(closed_form.wait.mean_s[0]), found.ttft_mean_s))
        tokens.append((float(closed_form.tpot_s[0]), found.tpot_s))
    off = _off(*map(list, zip(*waits, strict=True)))
    assert np.median(off) < 0.1
    assert np.quantile(off, 0.9) < 0.4
    assert np.median(_off(*map(list, zip(*tokens, strict=True)))) < 0.05


def test_closed_loops_serve_and_wait_as_in_an_engine_simulated_step_by_step():
    random = np.random.default_rng(8)
    waits: list[tuple[float, float]] = []
    rates: list[tuple[float, float]] = []
    for place in range(SIMULATED):
        steps, slots = _steps(random)
        clients = max(1, round(slots * (0.1, 0.4, 1.5, 3.0)[place % 4]))
        found = Engine(steps, slots, 0.2, place).closed_loop(clients, 20 * clients + 200, 0.003)
        closed_form = closed_loop(steps, _service(steps, slots, 0.12), np.array([float(clients)]))
        waits.append((float(closed_form.wait.mean_s[0]), found.ttft_mean_s))
        rates.append((float(closed_form.served_qps[0]), found.served_qps))
    off = _off(*map(list, zip(*waits, strict=True)))
    assert np.median(off) < 0.1
    assert np.quantile(off, 0.9) < 0.5
    assert np.max(_off(*map(list, zip(*rates, strict=True)))) < 0.1
