"""Tensors of torch in a checkpoint, bit for bit; skipped where torch is missing."""

from types import ModuleType

import pytest

from checkpoint_builders import there_and_back
from tenfold.checkpoint import CheckpointError, random_states, restore_random

TYPES = ("float32", "float64", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int64")


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """Imported where a test needs it, not where tests are collected: it takes a second."""
    return pytest.importorskip("torch", reason="torch is missing: pip install torch")


@pytest.mark.parametrize("name", [*TYPES, "bool", "complex64", "uint16"])
def test_a_tensor_of_any_type_comes_back_bit_for_bit(torch: ModuleType, name: str):
    dtype = getattr(torch, name)
    whole = torch.randint(0, 255, (4, 6, dtype.itemsize), dtype=torch.uint8)
    tensor = (whole > 127)[..., 0] if name == "bool" else whole.view(dtype)[..., 0]
    for given in (tensor, tensor.t(), tensor[1], tensor[0, 0], tensor[:0]):
        found = there_and_back({"t": given})["t"]
        assert (found.dtype, found.shape) == (given.dtype, given.shape)
        bits = [one.contiguous().reshape(-1).view(torch.uint8) for one in (found, given)]
        assert torch.equal(*bits)


def test_a_model_and_its_optimiser_go_on_as_if_nothing_had_happened(torch: ModuleType):
    def build():
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        return model, torch.optim.AdamW(model.parameters(), lr=0.1)

    def train(model, optimiser):
        for _ in range(3):
            loss = model(torch.randn(8, 4)).square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    model, optimiser = build()
    train(model, optimiser)
    kept = there_and_back(
        {"m": model.state_dict(), "o": optimiser.state_dict(), "r": random_states()}
    )
    train(model, optimiser)
    again, other = build()
    again.load_state_dict(kept["m"])
    other.load_state_dict(kept["o"])
    restore_random(kept["r"])
    train(again, other)
    for one, two in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, two)


def test_tensors_without_bytes_of_their_own_are_refused(torch: ModuleType):
    for tensor in (torch.eye(3).to_sparse(), torch.empty(3, device="meta")):
        with pytest.raises(CheckpointError) as caught:
            there_and_back(tensor)
        assert caught.value.code == "checkpoint-cannot-store"
