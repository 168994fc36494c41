"""From an order to the first token, against what one H200 measured."""

from dataclasses import replace

import numpy as np
import pytest

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.coldstart import (
    MEASURED_LOADER,
    MEASURED_SOFTWARE,
    ColdStart,
    Warm,
    cold_start,
    weights_s,
)


def one(value: float) -> Floats:
    return np.array([float(value)])


def start(gib: float = 16, gpus: float = 1, warm: Warm | None = None) -> ColdStart:
    size = one(gib * 2**30)
    return cold_start(MEASURED_LOADER, MEASURED_SOFTWARE, size, one(gpus), one(32), warm or Warm())


def test_measured_cold_and_warm_load_rates_are_reproduced():
    size = one(7.986e9)
    cold = size / weights_s(MEASURED_LOADER, size, one(1))
    warm = size / weights_s(MEASURED_LOADER, size, one(1), page_cache=True)
    assert cold[0] == pytest.approx(1.854e9, rel=0.01)
    assert warm[0] == pytest.approx(5.513e9, rel=0.01)


def test_streaming_takes_as_long_as_its_slowest_stage():
    streamed = replace(MEASURED_LOADER, overlap=np.array(1.0))
    assert weights_s(streamed, one(2.79e9), one(1))[0] == pytest.approx(1.0)


def test_readers_of_one_node_share_its_tier():
    alone, crowded = (weights_s(MEASURED_LOADER, one(1e9), one(gpus))[0] for gpus in (1, 8))
    assert crowded - alone == pytest.approx(1e9 / (7e9 / 8) - 1e9 / 2.79e9)


def test_causes_add_up_to_the_total():
    found = start()
    parts = [getattr(found, name)[0] for name in ColdStart.__slots__]
    assert found.total_s[0] == pytest.approx(sum(parts))
    assert min(parts) >= 0


def test_each_thing_left_warm_shortens_the_start():
    software = replace(MEASURED_SOFTWARE, image_bytes=np.array(10e9))
    sizes = (one(16 * 2**30), one(1), one(32))
    totals = [
        cold_start(MEASURED_LOADER, software, *sizes, warm).total_s[0]
        for warm in (
            Warm(image=False),
            Warm(),
            Warm(page_cache=True),
            Warm(page_cache=True, compiled=True),
        )
    ]
    assert totals == sorted(totals, reverse=True)
    assert len(set(totals)) == len(totals)


def test_larger_weights_start_later_and_only_by_their_loading():
    small, large = start(gib=8), start(gib=80)
    assert large.weights_s > small.weights_s
    assert large.total_s - large.weights_s == pytest.approx(small.total_s - small.weights_s)
