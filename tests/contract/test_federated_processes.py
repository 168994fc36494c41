"""Three real processes average their models, and the model of a round counts what they sent."""

import importlib.util
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from patience import HANG_S
from tenfold.model.federated import FederatedJob, FederatedSite
from tenfold.model.ids import SiteId
from tenfold.physics.federated import Round, federated_round

SCRIPT = Path(__file__).parents[2] / "examples" / "federated" / "round.py"
ROUNDS, STEPS, RATE, SEED = 25, 10, 0.5, 7


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("federated_round", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ran() -> dict[str, list]:
    words = [sys.executable, str(SCRIPT), "--json", "--rounds", str(ROUNDS)]
    words += ["--local-steps", str(STEPS), "--rate", str(RATE), "--seed", str(SEED)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=HANG_S)
    return json.loads(done.stdout)


def test_three_processes_come_near_the_optimum_of_all_data(ran):
    assert len(set(ran["processes"])) == 3
    assert ran["losses"][0] > 1.1 * ran["loss_pooled"]
    assert ran["loss_pooled"] <= ran["losses"][-1] <= 1.005 * ran["loss_pooled"]


def test_every_round_is_what_one_process_computes(ran, example: ModuleType):
    alone = example.in_one_process(ROUNDS, STEPS, RATE, SEED)
    assert len(ran["weights"]) == ROUNDS
    for apart, together in zip(ran["weights"], alone, strict=True):
        assert np.array_equal(np.array(apart), together)


def test_the_average_counts_each_site_by_its_samples(example: ModuleType):
    """Against fractions, which round nothing: the last bit may differ, and no more."""
    updates = [
        example.train(*example.draw(site, SEED), np.zeros(example.WEIGHTS), STEPS, RATE)
        for site in range(3)
    ]
    samples = [shard.samples for shard in example.SHARDS]
    assert len(set(samples)) == 3
    for place, value in enumerate(example.average(updates, samples)):
        parts = [
            count * Fraction(float(update[place]))
            for update, count in zip(updates, samples, strict=True)
        ]
        assert value == pytest.approx(float(sum(parts) / sum(samples)), rel=1e-14)


def test_the_bytes_sent_are_those_the_physics_counts(ran, example: ModuleType):
    sites = tuple(
        FederatedSite(site=SiteId(f"s{at}"), step_s=1.0, samples=1, bytes_per_s=1e6)
        for at in range(3)
    )
    model_bytes = 8.0 * example.WEIGHTS
    job = FederatedJob(
        sites=sites, model_bytes=model_bytes, local_steps=STEPS, per_round=3, quorum=3
    )
    counted = federated_round(job)
    assert isinstance(counted, Round)
    assert ran["bytes_sent"] == counted.wan_bytes_per_round * ROUNDS


def test_shards_are_unlike(example: ModuleType):
    """Were they alike, any one site would do, and the example would show nothing."""
    points, labels, best = example.pooled_optimum(SEED)
    centres = [example.draw(site, SEED)[0][:, :-1].mean() for site in range(3)]
    assert max(centres) - min(centres) > 0.5
    own = example.train(*example.draw(0, SEED), np.zeros(example.WEIGHTS), 2000, RATE)
    assert example.loss(points, labels, own) > 1.01 * example.loss(points, labels, best)
