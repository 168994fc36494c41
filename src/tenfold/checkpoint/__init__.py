"""Crash-safe checkpoints: a library for training code.

Belongs here: saving, loading, verifying and pruning checkpoints. Values are nested dicts, lists
and tuples of numpy arrays, torch tensors, numbers, strings, bytes and None; nothing is pickled.
A checkpoint is loaded by as many ranks as saved it.
Does not belong here: imports of any other room, or anything that needs a running Tenfold.
"""

from tenfold.checkpoint.errors import CheckpointError
from tenfold.checkpoint.loading import Checkpoint, Report, load, load_at, newest, verify
from tenfold.checkpoint.rng import random_states, restore_random
from tenfold.checkpoint.saver import Saver
from tenfold.checkpoint.saving import How, save

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "How",
    "Report",
    "Saver",
    "load",
    "load_at",
    "newest",
    "random_states",
    "restore_random",
    "save",
    "verify",
]
