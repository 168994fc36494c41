"""Federated averaging over three real processes on one machine.

    python examples/federated/round.py --rounds 30 --json

A coordinator starts one process a site. Each draws its own shard, unlike the others in
size and in where its points lie, and never sends it: only weights go over the loopback
sockets. The model is a logistic regression, small enough to find the optimum of all data
together and see how near the average comes. Only numpy is needed.
"""

import argparse
import json
import multiprocessing
import socket
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

Array = np.ndarray
FEATURES = 6
WEIGHTS = FEATURES + 1
TRUTH = np.array([1.5, -2.0, 0.7, 0.0, 1.0, -0.5, 0.3])
HEADER = struct.Struct("!II")
"""Number of the site, and how many bytes of weights follow."""


class Shard(NamedTuple):
    """What one site has: how many samples, and where its points lie."""

    samples: int
    centre: float
    spread: float


SHARDS = (Shard(300, -0.6, 1.0), Shard(900, 0.2, 0.7), Shard(1800, 0.5, 1.3))


def draw(site: int, seed: int) -> tuple[Array, Array]:
    """Return the points and labels of a site; the same each time."""
    shard = SHARDS[site]
    dice = np.random.default_rng([seed, site])
    points = dice.normal(shard.centre, shard.spread, size=(shard.samples, FEATURES))
    points = np.hstack([points, np.ones((shard.samples, 1))])
    labels = (dice.random(shard.samples) < chance(points, TRUTH)).astype(np.float64)
    return points, labels


def chance(points: Array, weights: Array) -> Array:
    """Return how likely each point is labelled 1."""
    return 1.0 / (1.0 + np.exp(-(points @ weights)))


def loss(points: Array, labels: Array, weights: Array) -> float:
    """Return the mean cross-entropy."""
    scores = points @ weights
    return float(np.mean(np.logaddexp(0.0, scores) - labels * scores))


def train(points: Array, labels: Array, weights: Array, steps: int, rate: float) -> Array:
    """Return the weights after some steps on the points of one site."""
    own = weights.copy()
    for _ in range(steps):
        own -= rate * (points.T @ (chance(points, own) - labels)) / len(labels)
    return own


def average(updates: Sequence[Array], samples: Sequence[int]) -> Array:
    """Return the mean of the sites' weights, each counting by its samples."""
    total = np.zeros(WEIGHTS)
    for update, count in zip(updates, samples, strict=True):
        total += count * update
    return total / sum(samples)


def in_one_process(rounds: int, steps: int, rate: float, seed: int) -> list[Array]:
    """Return the weights after each round, without sockets or processes."""
    shards = [draw(site, seed) for site in range(len(SHARDS))]
    weights, history = np.zeros(WEIGHTS), []
    for _ in range(rounds):
        updates = [train(*shard, weights, steps, rate) for shard in shards]
        weights = average(updates, [shard.samples for shard in SHARDS])
        history.append(weights)
    return history


def over_sockets(
    rounds: int, steps: int, rate: float, seed: int
) -> tuple[list[Array], int, list[int]]:
    """Return the weights after each round, the bytes of weights sent, and the sites' processes."""
    spawn = multiprocessing.get_context("spawn")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        port = server.getsockname()[1]
        workers = [
            spawn.Process(target=site_process, args=(site, port, rounds, steps, rate, seed))
            for site in range(len(SHARDS))
        ]
        for worker in workers:
            worker.start()
        try:
            history, sent = coordinate(server, rounds)
        finally:
            for worker in workers:
                worker.join(10)
                if worker.is_alive():
                    worker.terminate()
    return history, sent, [worker.pid or 0 for worker in workers]


def coordinate(server: socket.socket, rounds: int) -> tuple[list[Array], int]:
    """Send the model, wait for every site, average; round after round."""
    lines = [server.accept()[0] for _ in SHARDS]
    for line in lines:
        line.settimeout(60)
    weights, history, sent = np.zeros(WEIGHTS), [], 0
    for _ in range(rounds):
        for line in lines:
            sent += send(line, 0, weights)
        # Sites answer in any order; the mean is taken in theirs, or its last bits would vary.
        answers = dict(receive(line) for line in lines)
        updates = [answers[site] for site in range(len(SHARDS))]
        sent += sum(update.nbytes for update in updates)
        weights = average(updates, [shard.samples for shard in SHARDS])
        history.append(weights)
    for line in lines:
        line.close()
    return history, sent


def site_process(site: int, port: int, rounds: int, steps: int, rate: float, seed: int) -> None:
    """Be one site: take the model, train on what is here, send the weights back."""
    points, labels = draw(site, seed)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
        for _ in range(rounds):
            _, weights = receive(line)
            send(line, site, train(points, labels, weights, steps, rate))


def send(line: socket.socket, site: int, weights: Array) -> int:
    """Send weights; return how many bytes they are."""
    content = weights.astype("<f8").tobytes()
    line.sendall(HEADER.pack(site, len(content)) + content)
    return len(content)


def receive(line: socket.socket) -> tuple[int, Array]:
    """Return the next weights and the site they come from."""
    site, size = HEADER.unpack(exactly(line.recv, HEADER.size))
    return site, np.frombuffer(exactly(line.recv, size), dtype="<f8").copy()


def exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Read so many bytes, however they are cut on the way."""
    content = b""
    while len(content) < size:
        more = read(size - len(content))
        if not more:
            raise ConnectionError("the other end closed the line")
        content += more
    return content


def pooled_optimum(seed: int) -> tuple[Array, Array, Array]:
    """Return all points, all labels, and the weights that no averaging could better."""
    shards = [draw(site, seed) for site in range(len(SHARDS))]
    points = np.vstack([shard[0] for shard in shards])
    labels = np.concatenate([shard[1] for shard in shards])
    weights = np.zeros(WEIGHTS)
    for _ in range(25):
        odds = chance(points, weights)
        curve = (points * (odds * (1 - odds))[:, None]).T @ points
        weights = weights - np.linalg.solve(curve, points.T @ (odds - labels))
    return points, labels, weights


def main() -> None:
    """Run the rounds and say how near they came."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--local-steps", type=int, default=10)
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print JSON, every round in it")
    asked = parser.parse_args()
    history, sent, processes = over_sockets(asked.rounds, asked.local_steps, asked.rate, asked.seed)
    points, labels, best = pooled_optimum(asked.seed)
    least = loss(points, labels, best)
    losses = [loss(points, labels, weights) for weights in history]
    if asked.json:
        rounds = [weights.tolist() for weights in history]
        answer = {"weights": rounds, "losses": losses, "loss_pooled": least}
        print(json.dumps({**answer, "bytes_sent": sent, "processes": processes}))
        return
    for number, value in enumerate(losses, start=1):
        if number in (1, 2, 5) or number % 10 == 0:
            print(f"round {number:3}: loss {value:.5f}, {value / least - 1:+.2%} of the optimum")
    print(f"{len(processes)} processes sent {sent:,} bytes of weights, and no data")


if __name__ == "__main__":
    main()
