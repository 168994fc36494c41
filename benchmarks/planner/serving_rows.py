"""The published inference rows as arrays, every name resolved through the catalogue.

The tables live beside the repository, in `../shared`, and not in it: where they are absent
`read_published` returns None, and a benchmark has nothing to judge by.
"""

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.profiles import EngineProfile
from tenfold.model.facts.shape import ModelShape
from tenfold.model.fleet.hardware import Accelerator
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.devices import serving_devices
from tenfold.physics.serving.engines import Catalog, release_number, resolve
from tenfold.physics.serving.kv_cache import ReplicaLayout
from tenfold.physics.serving.precision import precision_widths
from tenfold.physics.serving.serve import RequestedLoad, Served, estimate
from tenfold.physics.serving.shapes import serving_shapes

SHARED = Path(__file__).resolve().parents[3] / "shared"
PUBLISHED = SHARED / "published" / "published_inference.csv"
KERNELS = SHARED / "measured" / "h200_kernels.jsonl"
FITTED = ("max-throughput", "static-batch", "first-token")
MODES = {"off": FITTED[0], "sta": FITTED[1], "fir": FITTED[2], "onl": "online", "agg": "agg"}
# One table leaves the version out; its neighbours are of this one.
DEFAULT_VERSION = "1.1"
NAN = float("nan")
RUNS_PER_CLIENT = 10.0
DATE = "2026-11-15"
"""Of the day on which the tables were gathered."""
TABLES = EngineProfile(
    name="trtllm",
    scope="family",
    aliases=(
        "tensorrt",
        "tensorrtllm",
        "tensorrtllm+triton",
        "trtllm+triton",
        "trtllmtriton",
        "trt",
    ),
    requests=(
        (128, 128, 30000),
        (128, 4096, 1500),
        (2048, 2048, 1500),
        (5000, 500, 1500),
        (20000, 2000, 1000),
    ),
    requests_usual=3000,
    requests_online=500,
    gateway_s=0.004,
    attention_dp_from="1.0",
    source="Fitted on TensorRT-LLM perf-overview tables 0.8 to 1.1",
    date=DATE,
    evidence="published",
    assumed=("requests", "requests_usual", "requests_online", "gateway_s"),
)
"""How the tables' runs were made: not fitted, and what the tables do not say is assumed."""
_SPREADS_FROM = release_number(TABLES.attention_dp_from)


@dataclass(frozen=True, slots=True)
class Published:
    """One published measurement; NaN where its table does not say."""

    id: str
    engine: str
    version: str
    model: str
    shape: ModelShape
    part: Accelerator
    gpus: float
    tp: float
    pp: float
    attention_dp: float
    precision: str
    input_tokens: float
    output_tokens: float
    batch: float
    qps: float
    mode: str
    """A mode of the contract, or `agg`: a closed loop of `batch` clients."""
    tokens_per_s: float
    ttft_s: float
    tpot_s: float
    requests: float = NAN
    """Length of the run, where its table or the scripts behind it say so."""
    load_stated: bool = True


def tables_of(rows: Sequence[Published]) -> "Rows":
    """Return the rows that fits are made on."""
    return Rows([row for row in rows if row.mode in FITTED])


def read_published(catalogue: Catalogue) -> tuple[list[Published], list[str]] | None:
    """Return the rows, and the names that the catalogue does not know; None without tables."""
    if not PUBLISHED.exists():
        return None
    rows: list[Published] = []
    unknown: list[str] = []
    with PUBLISHED.open(newline="") as stream:
        for cells in csv.DictReader(stream):
            mode = MODES.get(cells["mode"][:3])
            model = catalogue.models.find(cells["model"])
            part = catalogue.accelerators.find(cells["accelerator"])
            if mode is None:
                continue
            if model is None or part is None:
                unknown.append(cells["model"] if model is None else cells["accelerator"])
                continue
            rows.append(_row(cells, mode, model.shape, part))
    return _named(rows, catalogue), unknown


def absent() -> str:
    return f"no published rows: `{PUBLISHED}` is not there, so nothing is judged"


def _row(cells: dict[str, str], mode: str, shape: ModelShape, part: Accelerator) -> Published:
    def number(key: str) -> float:
        return float(cells[key]) if cells[key] else NAN

    gpus, tp, dp = number("n_gpus"), number("tp"), number("attn_dp")
    return Published(
        id=cells["row_id"],
        engine=cells["engine"],
        version=cells["engine_version"],
        model="",
        shape=shape,
        part=part,
        gpus=gpus,
        # Some tables give the same ranks twice, as tensor and as data parallel.
        tp=1.0 if tp * dp > gpus else tp,
        pp=number("pp") if cells["pp"] else 1.0,
        attention_dp=dp,
        precision=cells["precision"].lower(),
        input_tokens=number("isl"),
        output_tokens=number("osl"),
        batch=number("batch") if cells["batch"] else number("concurrency"),
        qps=float(cells["qps"].replace("INF", "inf")) if cells["qps"] else NAN,
        mode=mode,
        tokens_per_s=number("out_tok_s_total"),
        ttft_s=number("ttft_ms") / 1e3,
        tpot_s=number("tpot_ms") / 1e3,
        requests=_requests(cells["mode"], number("concurrency")),
        load_stated=bool(cells["qps"] or cells["concurrency"]),
    )


def _requests(mode: str, clients: float) -> float:
    """Tables of streams say how long a run is; the scripts behind the closed loops (InferenceMAX)
    send ten requests for each client.
    """
    stated = re.search(r"(\d+) requests", mode)
    return float(stated[1]) if stated else RUNS_PER_CLIENT * clients


def _named(rows: Sequence[Published], catalogue: Catalogue) -> list[Published]:
    """Call rows by the first preset of their shape: Llama 3.1 and 3.3 70B are one model here,
    or leaving one out would teach nothing.
    """
    names: dict[str, str] = {}
    for preset in catalogue.models:
        names.setdefault(_shape_key(preset.shape), preset.name)
    fields = Published.__slots__
    return [
        Published(
            **{name: getattr(row, name) for name in fields if name != "model"},
            model=names[_shape_key(row.shape)],
        )
        for row in rows
    ]


def _shape_key(shape: ModelShape) -> str:
    return repr(replace(shape, context=0))


class Rows:
    """Published rows as the arrays that a fit takes."""

    def __init__(self, rows: Sequence[Published]) -> None:
        self.rows = list(rows)
        self.shape = serving_shapes([row.shape for row in rows])
        self.device = serving_devices([row.part for row in rows])
        self.given, self.asked = self.column("input_tokens"), self.column("output_tokens")
        self.batch = self.column("batch")
        self.part = np.array([row.part.name for row in rows])
        self.model = np.array([row.model for row in rows])
        self.mode = np.array([row.mode for row in rows])
        self.version = np.array([row.version or DEFAULT_VERSION for row in rows])
        self.release = np.array([release_number(version) for version in self.version])
        self.number = precision_widths([row.precision for row in rows], self.shape)
        self.layout = self._layout()
        first = self.mode == "first-token"
        self.observed = np.where(first, 1.0 / self.column("ttft_s"), self.column("tokens_per_s"))
        listed = {(a, b): count for a, b, count in TABLES.requests}
        usual = TABLES.requests_usual
        sizes = zip(self.given.tolist(), self.asked.tolist(), strict=True)
        self.requests = np.array([listed.get(size, usual) for size in sizes], dtype=float)

    def column(self, name: str) -> Floats:
        return np.array([getattr(row, name) for row in self.rows], dtype=float)

    def _layout(self) -> ReplicaLayout:
        tp, dp = self.column("tp"), self.column("attention_dp")
        spreads = (self.shape.experts > 0) & (self.release >= _SPREADS_FROM)
        swap = spreads & np.isnan(dp) & (tp > 1)
        dp = np.where(np.isnan(dp), 1.0, np.maximum(dp, 1.0))
        return ReplicaLayout(np.where(swap, 1.0, tp), self.column("pp"), np.where(swap, tp, dp))

    def take(self, mask: NDArray[np.bool_]) -> "Rows":
        return Rows([row for row, keep in zip(self.rows, mask, strict=True) if keep])


def served(rows: Sequence[Published], catalog: Catalog, engine: str | None = "") -> Served:
    """Return what the contract's physics answers; `engine` replaces what the rows say."""
    closed = np.array([row.mode == "agg" for row in rows])

    def column(name: str) -> Floats:
        return np.array([getattr(row, name) for row in rows], dtype=float)

    dp, qps = column("attention_dp"), column("qps")
    asked = RequestedLoad(
        tp=column("tp"),
        pp=column("pp"),
        attention_dp=np.where(closed & np.isnan(dp), 1.0, dp),
        input_tokens=column("input_tokens"),
        output_tokens=column("output_tokens"),
        batch=column("batch"),
        # An infinite rate is a flood, which the contract says by leaving the rate out.
        qps=np.where(np.isinf(qps), np.nan, qps),
        mode=np.array(["online" if row.mode == "agg" else row.mode for row in rows]),
        precision=tuple(row.precision for row in rows),
        requests=column("requests"),
    )
    profiles = [
        resolve(catalog, f"{row.engine} {row.version}" if engine == "" else engine, row.part.name)
        for row in rows
    ]
    shapes = serving_shapes([row.shape for row in rows])
    devices = serving_devices([row.part for row in rows])
    return estimate(asked, shapes, devices, profiles)[0]


def rate_error(rows: Sequence[Published], answer: Served) -> Floats:
    """Return log(predicted / published) of the figure that each row's table prints."""
    first = np.array([row.mode == "first-token" for row in rows])
    seen = np.array([row.ttft_s if row.mode == "first-token" else row.tokens_per_s for row in rows])
    return np.where(
        first,
        -np.log(answer.ttft_s / seen),
        np.log(answer.output_tokens_per_s / seen),
    )


def read_decode_steps() -> list[dict[str, float]]:
    """Return the decode steps measured on an H200, none where the file is absent."""
    if not KERNELS.exists():
        return []
    rows = [json.loads(line) for line in KERNELS.read_text().splitlines()]
    return [row for row in rows if row["kind"] == "decode"]
