"""Checkpoints that survive: a library for training code.

Imports nothing else of Tenfold and nothing heavy, and works without Tenfold running. Values
are nested dicts, lists and tuples of numpy arrays, torch tensors, numbers, texts, bytes and
None. Nothing is pickled. A checkpoint is loaded by as many ranks as saved it.
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
