"""What objects cost: the processor time of each server, in turn, over the same requests.

Client and servers share the machine, so throughput is what both reach together; processor time is
the server's alone. Each round runs every server once; the median of the rounds is shown.
"""

import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.objects.contenders import Contender, nginx, ours, radosgw, seaweedfs
from benchmarks.objects.load import Load, drive
from benchmarks.verdict import Verdict

MIB = 1 << 20
GB = 1e9
LARGE_BYTES = 16 * MIB
SMALL_BYTES = 4_096
STREAM_BYTES = MIB
ROUNDS = int(os.environ.get("TENFOLD_BENCH_ROUNDS", "5"))


@dataclass(frozen=True)
class Part:
    """One kind of load."""

    name: str
    size_bytes: int
    connections: int
    count: int
    method: str = "GET"


LARGE = Part("GET 16 MiB", LARGE_BYTES, 4, 60)
SMALL = Part("GET 4 KiB", SMALL_BYTES, 16, 4_000)
PUT = Part("PUT 16 MiB", LARGE_BYTES, 4, 40, "PUT")
STREAMS = tuple(
    Part(f"{count} streams of 1 MiB", STREAM_BYTES, count, max(2 * count, 4_096))
    for count in (64, 1_024, 4_096)
)


@dataclass(frozen=True)
class Cost:
    """What one run cost."""

    load: Load
    cpu_s: float

    @property
    def cpu_s_per_gb(self) -> float:
        """Return processor seconds for each GB of bodies."""
        return self.cpu_s / (max(self.load.received_bytes, self.load.sent_bytes) / GB)

    @property
    def cpu_us_per_request(self) -> float:
        """Return processor microseconds for each request."""
        return self.cpu_s / self.load.requests * 1e6

    @property
    def gb_per_s(self) -> float:
        """Return throughput."""
        return max(self.load.received_bytes, self.load.sent_bytes) / GB / self.load.seconds


def run(thresholds: dict[str, float]) -> list[Verdict]:
    """Measure reads, writes and streams; print every contender."""
    with _contenders() as contenders:
        large = _rounds(LARGE, contenders)
        small = _rounds(SMALL, contenders)
        mine = [one for one in contenders if one.name.startswith("tenfold")]
        put = _rounds(PUT, [one for one in contenders if one.can_write])
        streams = {part.connections: _rounds(part, mine[:1], 1) for part in STREAMS}
    verdicts = [verdict for one in mine for verdict in _of_layout(one.name, large, put, thresholds)]
    verdicts.append(
        Verdict(
            "GET 4 KiB, signed, processor time",
            _median(small["tenfold"], lambda cost: cost.cpu_us_per_request),
            thresholds["small_us"],
            " us",
        )
    )
    base = streams[64]["tenfold"][0].gb_per_s
    for count in (1_024, 4_096):
        cost = streams[count]["tenfold"][0]
        verdicts += [
            Verdict(f"{count} streams, errors", cost.load.errors, thresholds["stream_errors"]),
            Verdict(
                f"{count} streams, throughput over 64 streams",
                cost.gb_per_s / base,
                at_least=thresholds["streams_over_64"],
            ),
        ]
    return verdicts


def _of_layout(
    name: str,
    large: Mapping[str, Sequence[Cost]],
    put: Mapping[str, Sequence[Cost]],
    thresholds: Mapping[str, float],
) -> list[Verdict]:
    """Judge large reads and writes of one layout: a single replica, or a redundant one."""
    return [
        Verdict(
            f"{name}: GET 16 MiB, throughput over nginx",
            _paired(large, name, "nginx", lambda cost: cost.gb_per_s),
            at_least=thresholds["large_over_nginx"],
        ),
        Verdict(
            f"{name}: GET 16 MiB, processor time per GB over nginx",
            _paired(large, name, "nginx", lambda cost: cost.cpu_s_per_gb),
            thresholds["large_cpu_over_nginx"],
        ),
        Verdict(
            f"{name}: PUT 16 MiB, processor time",
            _median(put[name], lambda cost: cost.cpu_s_per_gb),
            thresholds["put_s_per_gb"],
            " s/GB",
        ),
    ]


@contextmanager
def _contenders() -> Iterator[list[Contender]]:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        found: list[Contender] = []
        for make in (nginx, ours, _ours_twice, _ours_coded, radosgw, seaweedfs):
            contender = stack.enter_context(make(Path(folder)))
            if contender is None:
                print(f"  {make.__name__} is not installed: its rows are missing")
            else:
                found.append(contender)
        for contender in found:
            for name, size in (("large", LARGE_BYTES), ("small", SMALL_BYTES), ("stream", MIB)):
                contender.store(name, os.urandom(size))
        yield found


def _ours_twice(folder: Path):
    return ours(folder, "replicas = 2", 2)


def _ours_coded(folder: Path):
    return ours(folder, 'erasure = "4+2"', 6)


def _rounds(
    part: Part, contenders: Sequence[Contender], rounds: int = ROUNDS
) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {one.name: [] for one in contenders}
    body = os.urandom(part.size_bytes) if part.method == "PUT" else b""
    names = {LARGE_BYTES: "large", SMALL_BYTES: "small", STREAM_BYTES: "stream"}
    for number in range(rounds):
        for contender in contenders:
            if part.method == "PUT":
                requests = [contender.put(f"put-{number}-{i}", body) for i in range(4)]
            else:
                requests = [contender.get(names[part.size_bytes])]
            before = contender.cpu_s()
            load = drive(contender.address, requests, part.connections, part.count)
            costs[contender.name].append(Cost(load, contender.cpu_s() - before))
    for name, found in costs.items():
        _show(part, name, found)
    return costs


def _show(part: Part, name: str, costs: Sequence[Cost]) -> None:
    errors = sum(cost.load.errors for cost in costs)
    first = next((cost.load.first_error for cost in costs if cost.load.first_error), "")
    print(
        f"  {part.name:24} {name:22} "
        f"{_median(costs, lambda cost: cost.gb_per_s):6.3f} GB/s "
        f"{_median(costs, lambda cost: cost.cpu_s_per_gb):8.2f} CPU-s/GB "
        f"{_median(costs, lambda cost: cost.cpu_us_per_request):10.0f} CPU-us/request "
        f"{errors} errors {first[:80]}".rstrip(),
        flush=True,
    )


def _median(costs: Sequence[Cost], figure: Callable[[Cost], float]) -> float:
    return statistics.median(figure(cost) for cost in costs)


def _paired(
    costs: Mapping[str, Sequence[Cost]], one: str, other: str, figure: Callable[[Cost], float]
) -> float:
    """Return the median over rounds of the ratio within a round; NaN if one is missing."""
    if other not in costs:
        return float("nan")
    pairs = zip(costs[one], costs[other], strict=True)
    return statistics.median(figure(a) / figure(b) for a, b in pairs)
