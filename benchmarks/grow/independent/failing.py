"""A second failure simulator: bursts that arrive by a renewal process, repairs, and lemon nodes."""

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Fault:
    node: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Bursts:
    """Whole racks go down together; every fault of a burst has its own repair time."""

    nodes: int
    nodes_per_rack: int
    bursts_per_day: float
    repair_h: float
    # Of the bursts, how many take one node only.
    single_share: float = 0.5

    def draw(self, seed: int, days: float) -> list[Fault]:
        generator = random.Random(seed)
        racks = self.nodes // self.nodes_per_rack
        until_s, now = days * 86_400.0, 0.0
        faults: list[Fault] = []
        up_at = [0.0] * self.nodes
        while True:
            now += generator.expovariate(self.bursts_per_day / 86_400)
            if now >= until_s:
                return faults
            rack = generator.randrange(racks) * self.nodes_per_rack
            hit = range(rack, rack + self.nodes_per_rack)
            if generator.random() < self.single_share:
                hit = [generator.choice(hit)]
            for node in hit:
                if up_at[node] <= now:
                    end_s = now + generator.expovariate(1 / (self.repair_h * 3600))
                    up_at[node] = end_s
                    faults.append(Fault(node, now, end_s))

    def times(self, factor: float) -> "Bursts":
        """Return a fleet `factor` as large: as many more racks, each failing as before."""
        racks = max(1, round(self.nodes / self.nodes_per_rack * factor))
        grown = racks * self.nodes_per_rack
        return Bursts(
            grown,
            self.nodes_per_rack,
            self.bursts_per_day * grown / self.nodes,
            self.repair_h,
            self.single_share,
        )


def renewals(seed: int, days: float, nodes: Sequence[tuple[float, float]]) -> list[Fault]:
    """Return faults of independent nodes, each with (mean hours up, mean hours down)."""
    generator = random.Random(seed)
    until_s = days * 86_400.0
    faults: list[Fault] = []
    for node, (up_h, down_h) in enumerate(nodes):
        # An exponential time up has no memory, so only the chance to start down must be drawn.
        now = 0.0
        if generator.random() < down_h / (up_h + down_h):
            now = generator.expovariate(1 / (down_h * 3600))
            faults.append(Fault(node, 0.0, now))
        while True:
            now += generator.expovariate(1 / (up_h * 3600))
            if now >= until_s:
                break
            end_s = now + generator.expovariate(1 / (down_h * 3600))
            faults.append(Fault(node, now, end_s))
            now = end_s
    return sorted(faults, key=lambda fault: fault.start_s)


def time_by_count(faults: Iterable[Fault], from_s: float, until_s: float) -> dict[int, float]:
    """Return seconds by how many nodes are down; a node counts once, whatever its faults."""
    steps: list[tuple[float, int]] = []
    for start_s, end_s in _merged(faults):
        if end_s > from_s and start_s < until_s:
            steps += [(max(start_s, from_s), 1), (min(end_s, until_s), -1)]
    seconds: dict[int, float] = {}
    now, down = from_s, 0
    for at_s, change in [*sorted(steps), (until_s, 0)]:
        seconds[down] = seconds.get(down, 0.0) + at_s - now
        now, down = at_s, down + change
    return seconds


def _merged(faults: Iterable[Fault]) -> list[tuple[float, float]]:
    by_node: dict[int, list[Fault]] = {}
    for fault in faults:
        by_node.setdefault(fault.node, []).append(fault)
    spans: list[tuple[float, float]] = []
    for own in by_node.values():
        own.sort(key=lambda fault: fault.start_s)
        start_s, end_s = own[0].start_s, own[0].end_s
        for fault in own[1:]:
            if fault.start_s <= end_s:
                end_s = max(end_s, fault.end_s)
            else:
                spans.append((start_s, end_s))
                start_s, end_s = fault.start_s, fault.end_s
        spans.append((start_s, end_s))
    return spans


def grown(
    faults: Sequence[Fault], nodes: int, nodes_per_rack: int, factor: float, days: float, seed: int
) -> list[Fault]:
    """Return a trace of more nodes: racks of the same trace, each copy at another time."""
    generator = random.Random(seed)
    until_s = days * 86_400
    racks = nodes // nodes_per_rack
    more: list[Fault] = []
    for copy in range(round(racks * factor)):
        # A copy of the whole trace keeps its times, so that what fails together stays together.
        if copy % racks == 0:
            shift = 0.0 if copy == 0 else generator.uniform(0.1, 0.9) * until_s
            order = generator.sample(range(racks), racks) if copy else range(racks)
        rack, base = order[copy % racks], copy * nodes_per_rack
        for fault in faults:
            if fault.node // nodes_per_rack == rack:
                node, long_s = base + fault.node % nodes_per_rack, fault.end_s - fault.start_s
                start_s = (fault.start_s + shift) % until_s
                more.append(Fault(node, start_s, start_s + long_s))
    return more


def short_share(seconds: dict[int, float], spares: int) -> float:
    """Return the share of time with more nodes down than spares."""
    return sum(span for down, span in seconds.items() if down > spares) / sum(seconds.values())


def spares_needed(seconds: dict[int, float], share: float) -> int:
    """Return the fewest spares that are short for at most this share of time."""
    spares = 0
    while short_share(seconds, spares) > share:
        spares += 1
    return spares


def as_csv(faults: Iterable[Fault], pool: str) -> str:
    rows = [
        f"{pool}-{fault.node + 1},{fault.start_s:.0f},{fault.end_s:.0f},gpu" for fault in faults
    ]
    return "\n".join(["node,start_s,end_s,cause", *rows]) + "\n"


def read_infinitehbd(path: Path) -> tuple[list[Fault], float]:
    """Return the faults of the published trace and its length in seconds; times are in days."""
    names: dict[str, int] = {}
    open_at: dict[int, list[float]] = {}
    faults: list[Fault] = []
    last = 0.0
    for event in sorted(json.loads(path.read_text()), key=lambda event: event["event_time"]):
        node = names.setdefault(event["node_id"], len(names))
        at_s = event["event_time"] * 86_400
        last = max(last, at_s)
        if event["event_type"] == "fault_start":
            open_at.setdefault(node, []).append(at_s)
        elif open_at.get(node):
            faults.append(Fault(node, open_at[node].pop(0), at_s))
    faults += [Fault(node, at_s, last) for node, starts in open_at.items() for at_s in starts]
    return faults, last
