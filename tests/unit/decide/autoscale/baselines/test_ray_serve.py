"""Our rule for Ray Serve against Ray's own policy code, on the same inputs."""

from typing import Any

import numpy as np
import pytest

from tenfold.decide.autoscale.baselines.ray_serve import RayServe, RayServeMemory


def test_it_decides_as_rays_own_policy_does(monkeypatch: pytest.MonkeyPatch):
    ray_policy: Any = pytest.importorskip(
        "ray.serve.autoscaling_policy", reason="ray[serve] is not installed"
    )
    config_module: Any = pytest.importorskip("ray.serve.config")
    # What the controller calls: the policy with delays and factors around it.
    decide: Any = ray_policy._apply_autoscaling_config(
        ray_policy.replica_queue_length_autoscaling_policy
    )
    config: Any = config_module.AutoscalingConfig(min_replicas=0, max_replicas=1_000)
    ours = RayServe()
    draws = np.random.default_rng(11)
    for _ in range(30):
        target, state = int(draws.integers(0, 6)), dict[str, Any]()
        memory = RayServeMemory(ours, target)
        load, running = 0.0, target
        # Whole seconds from a time near zero: Ray keeps floats.
        clock = _Clock()
        monkeypatch.setattr(ray_policy, "time", clock)
        for second in range(4_000):
            if draws.random() < 0.004:
                load = float(draws.choice([0.0, 1.0, 3.5, 8.0, 20.0, 61.0]))
            if draws.random() < 0.02:
                running = memory.target
            clock.now = float(second)
            theirs, state = decide(_context(config_module, config, load, running, target, state))
            target = max(theirs, 0)
            memory.target = max(ours.next_target(memory, running, load, second * 1_000), 0)
            assert memory.target == target, (second, load, running)


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def time(self) -> float:
        return self.now


def _context(
    module: Any, config: Any, load: float, running: int, target: int, state: dict[str, Any]
) -> Any:
    return module.AutoscalingContext(
        deployment_id=None,
        deployment_name="service",
        app_name=None,
        current_num_replicas=running,
        target_num_replicas=target,
        running_replicas=[],
        total_num_requests=load,
        total_queued_requests=None,
        aggregated_metrics=None,
        raw_metrics=None,
        capacity_adjusted_min_replicas=0,
        capacity_adjusted_max_replicas=1_000,
        policy_state=state,
        last_scale_up_time=None,
        last_scale_down_time=None,
        current_time=None,
        config=config,
    )
