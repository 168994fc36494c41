"""Train a small character-level language model with numpy; it may be killed and goes on.

    python3 train.py --out model --checkpoints checkpoints

It guesses the next character from the last ones: an embedding of each, one hidden layer, and a
probability for every character. The text is the documentation that comes with Python. A
checkpoint is saved every few seconds; the last line says how good the model is.
"""

import argparse
import json
import os
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np

from tenfold.checkpoint import Saver

CONTEXT, WIDTH, HIDDEN, BATCH = 12, 16, 128, 64
CHARACTERS = "\n" + "".join(chr(code) for code in range(32, 127))
REPORT_STEPS = 500
STOPPED = 75
"""Status of a run that was asked to stop and has saved: start it again."""

Weights = dict[str, np.ndarray]


def read_text(file: str) -> np.ndarray:
    """Return a text as numbers of characters; without a file, Python's own documentation."""
    own = "\n".join(topics[name] for name in sorted(topics))
    text = Path(file).read_text() if file else own
    return np.array([CHARACTERS.index(one) for one in text if one in CHARACTERS], dtype=np.int64)


def new_weights(draw: np.random.Generator) -> Weights:
    """Return weights that know nothing."""
    inputs, outputs = CONTEXT * WIDTH, len(CHARACTERS)
    return {
        "embedding": draw.normal(0, 0.3, (outputs, WIDTH)).astype(np.float32),
        "hidden": draw.normal(0, (2 / inputs) ** 0.5, (inputs, HIDDEN)).astype(np.float32),
        "hidden_bias": np.zeros(HIDDEN, np.float32),
        "output": draw.normal(0, 0.05, (HIDDEN, outputs)).astype(np.float32),
        "output_bias": np.zeros(outputs, np.float32),
    }


def batch(text: np.ndarray, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the contexts of a step and what follows each: the same whenever it is taken."""
    starts = np.random.default_rng(step).integers(0, len(text) - CONTEXT, BATCH)
    rows = starts[:, None] + np.arange(CONTEXT)
    return text[rows], text[starts + CONTEXT]


def gradients(weights: Weights, contexts: np.ndarray, truth: np.ndarray) -> tuple[float, Weights]:
    """Return the loss of a batch, and in which direction each weight makes it larger."""
    many = np.arange(len(truth))
    inputs = weights["embedding"][contexts].reshape(len(truth), -1)
    hidden = np.maximum(inputs @ weights["hidden"] + weights["hidden_bias"], 0)
    scores = hidden @ weights["output"] + weights["output_bias"]
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    loss = float(-np.log(chances[many, truth] + 1e-9).mean())
    chances[many, truth] -= 1
    error = chances / len(truth)
    back = (error @ weights["output"].T) * (hidden > 0)
    embedding = np.zeros_like(weights["embedding"])
    np.add.at(embedding, contexts, (back @ weights["hidden"].T).reshape(*contexts.shape, WIDTH))
    return loss, {
        "embedding": embedding,
        "hidden": inputs.T @ back,
        "hidden_bias": back.sum(axis=0),
        "output": hidden.T @ error,
        "output_bias": error.sum(axis=0),
    }


def train(options: argparse.Namespace, saver: Saver) -> int:
    """Take the steps that are left; return the exit status."""
    text = read_text(options.text)
    weights = new_weights(np.random.default_rng(7))
    speeds = {name: np.zeros_like(value) for name, value in weights.items()}
    found = saver.load()
    if found:
        weights, speeds = found.values["weights"], found.values["speeds"]
    first, seen = found.step if found else 0, list[float]()
    print(f"{len(text):,} characters; begins at step {first}", flush=True)
    for step in range(first, options.steps):
        loss, slopes = gradients(weights, *batch(text, step))
        seen = [*seen[-199:], loss]
        rate = options.learning_rate * (1 - 0.9 * step / options.steps)
        for name, slope in slopes.items():
            speeds[name] = 0.9 * speeds[name] - rate * slope
            weights[name] = weights[name] + speeds[name]
        saver.beat(step + 1)
        if (step + 1) % REPORT_STEPS == 0:
            print(f"step {step + 1}: loss {loss:.2f}", flush=True)
        if saver.due(step + 1):
            saver.save(step + 1, {"weights": weights, "speeds": speeds})
        if saver.asked_to_stop:
            return STOPPED
    write_model(Path(options.out), weights)
    print(f"model in {options.out}, loss {np.mean(seen) if seen else 0:.2f}", flush=True)
    return 0


def write_model(folder: Path, weights: Weights) -> None:
    """Write what a server needs: the weights, and what they are for."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "weights.npz", **weights)
    about = {"context": CONTEXT, "characters": CHARACTERS}
    (folder / "config.json").write_text(json.dumps(about, indent=2) + "\n")


def main() -> int:
    """Train a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="model", help="folder of the finished model")
    folder = os.environ.get("TENFOLD_CHECKPOINT_DIR", "checkpoints")
    parser.add_argument("--checkpoints", default=folder)
    parser.add_argument("--every-s", type=float, default=2.0, help="time between checkpoints")
    parser.add_argument("--steps", type=int, default=4_000)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--text", default="", help="train on this file")
    options = parser.parse_args()
    with np.errstate(all="ignore"), Saver(options.checkpoints, every_s=options.every_s) as saver:
        return train(options, saver)


if __name__ == "__main__":
    raise SystemExit(main())
