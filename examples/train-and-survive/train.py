"""A small training run that may be killed at any moment, and goes on where it was.

    torchrun --standalone --nproc-per-node 2 train.py

Every rank holds the whole model, as data-parallel training does, and draws its own dropout.
So the first rank saves the model and the optimiser, and each rank saves the state of its
random generators: without them the weights of a run that was broken off would differ from
those of one that was not. The last line is a hash of the final weights.
"""

import argparse
import hashlib
import os
import sys
import time

import torch
from torch import distributed, nn

from tenfold.checkpoint import Checkpoint, Saver, load_at, random_states, restore_random

SEED, BATCH, WIDTH = 7, 16, 32
STOPPED = 75
"""Status of a run that was asked to stop and has saved: start it again."""


def build() -> nn.Module:
    """Return the same model on every rank."""
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(8, WIDTH), nn.ReLU(), nn.Dropout(0.2), nn.Linear(WIDTH, 1))
    # From here on every rank draws its own numbers.
    torch.manual_seed(SEED + 1 + distributed.get_rank())
    return model


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the data of a step: the same ones whenever the step is taken."""
    own = torch.Generator().manual_seed(1000 * step + distributed.get_rank())
    points = torch.randn(BATCH, 8, generator=own)
    return points, points.sin().sum(1, keepdim=True)


def state(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, object]:
    """Return what this rank has to save."""
    values: dict[str, object] = {"random": random_states()}
    if distributed.get_rank() == 0:
        values |= {"model": model.state_dict(), "optimiser": optimiser.state_dict()}
    return values


def restore(found: Checkpoint, model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Take the model from the shard of the first rank, and the draws from one's own."""
    ranks = distributed.get_world_size()
    shared = load_at(found.path, rank=0, ranks=ranks).values
    model.load_state_dict(shared["model"])
    optimiser.load_state_dict(shared["optimiser"])
    restore_random(found.values["random"])


def agree(saver: Saver, step: int) -> tuple[bool, bool]:
    """Tell whether to save and whether to stop; all ranks get the same answer.

    The first rank's clock decides, and a notice to any rank stops all.
    """
    due = saver.due(step) and distributed.get_rank() == 0
    flags = torch.tensor([int(due), int(saver.asked_to_stop)])
    distributed.all_reduce(flags, distributed.ReduceOp.MAX)
    return bool(flags[0] or flags[1]), bool(flags[1])


def train(asked: argparse.Namespace, saver: Saver) -> int:
    """Take the steps that are left, and return the status to end with."""
    rank = distributed.get_rank()
    model = build()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    found = saver.load()
    if found:
        restore(found, model, optimiser)
    say(f"begins at step {found.step if found else 0}")
    parallel = nn.parallel.DistributedDataParallel(model)
    for step in range(found.step if found else 0, asked.steps):
        points, truth = batch(step)
        loss = nn.functional.mse_loss(parallel(points), truth)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        time.sleep(asked.pause_s)
        saver.beat(step + 1)
        save, stop = agree(saver, step + 1)
        if save:
            saver.save(step + 1, state(model, optimiser))
            say(f"saved step {step + 1}")
        if stop:
            return STOPPED
    if rank == 0:
        weights = b"".join(one.detach().numpy().tobytes() for one in model.parameters())
        print(f"final weights {hashlib.sha256(weights).hexdigest()}", flush=True)
    return 0


def say(line: str) -> None:
    """Print a line once, not once a rank."""
    if distributed.get_rank() == 0:
        print(line, flush=True)


def main() -> int:
    """Join the other ranks and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pause-s", type=float, default=0.05, help="make a step last longer")
    parser.add_argument("--checkpoints", default="checkpoints")
    parser.add_argument("--every-s", type=float, default=1.0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    try:
        with Saver(asked.checkpoints, every_s=asked.every_s, rank=rank, ranks=ranks) as saver:
            return train(asked, saver)
    finally:
        distributed.destroy_process_group()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Threads of gloo may outlive the group, and the interpreter's way out then aborts on them.
    os._exit(status)
