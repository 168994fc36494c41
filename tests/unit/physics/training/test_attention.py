"""Attention time by head size and sequence: padded kernels, and the fallback beyond the widest."""

import pytest

from tenfold.physics.training.attention import attention_s
from training_builders import part, plan, shape


def seconds(head: float, seq: float = 4096.0) -> float:
    """Return forward and backward of heads that are 2,048 wide together."""
    forward, backward = attention_s(
        shape(heads=2048 / head, head_dim=head), plan(seq=seq), part("H200"), 1.0, 1.0
    )
    return float(forward + backward)


def test_a_head_without_a_kernel_takes_as_long_as_one_of_the_next_size():
    # As many heads, so 80 is padded to 96.
    assert seconds(80) * 80 == pytest.approx(seconds(96) * 96)


def test_heads_wider_than_the_widest_kernel_are_many_times_slower():
    assert seconds(320) > 5 * seconds(256)


def test_long_sequences_run_at_a_higher_rate():
    assert seconds(128, 16_384) < 16 * seconds(128, 4096)


def test_a_compiler_makes_kernels_for_any_wide_head():
    def on_tpu(head: float) -> float:
        forward, backward = attention_s(
            shape(heads=2048 / head, head_dim=head), plan(), part("TPU-v4"), 1.0, 1.0
        )
        return float(forward + backward)

    assert on_tpu(384) == pytest.approx(on_tpu(128))
    assert on_tpu(64) > on_tpu(128)
