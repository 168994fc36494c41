"""`tenfold plan diff`: what two training plans require, side by side."""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter
from msgspec import Struct, structs

from tenfold.cli.arguments import Json
from tenfold.cli.output import print_json, show, table
from tenfold.files.core.document import read_text
from tenfold.model.errors import InputError
from tenfold.report.figures import quantity_bytes, rate_bytes, share
from tenfold.report.reasons.render import duration_text
from tenfold.study.plan.requirements import Requirements

LAYOUT = ("tp", "pp", "dp", "cp", "ep", "micro_batch", "shard", "recompute")
NAMES = {
    "gpus": "GPUs",
    "gpu_memory_gib": "memory per GPU (GiB)",
    "network_gbps_per_gpu": "network per GPU (Gbit/s)",
    "communication_share": "time in communication",
    "data_read_bytes_per_s": "data read rate",
    "checkpoint_bytes": "checkpoint size",
    "checkpoint_interval_s": "time between checkpoints",
    "checkpoint_write_bytes_per_s": "checkpoint write rate",
    "checkpoint_write_bytes_per_s_available": "checkpoint write rate available",
    "checkpoint_save_s": "time to save",
    "storage_bytes": "storage for 3 checkpoints",
    "host_memory_gib_per_node": "host memory per node (GiB)",
    "power_kw": "power (kW)",
    "failures_per_day": "failures per day",
    "days": "days",
    "step_s": "step time",
}


class _Plan(Struct, frozen=True, kw_only=True):
    """The parts of a plan that a comparison names; the report holds more."""

    model: str | dict[str, object]
    step_s: float
    tp: int
    pp: int
    dp: int
    cp: int
    ep: int
    micro_batch: int
    shard: str
    recompute: str


class _Report(Struct, frozen=True, kw_only=True):
    """What `plan train --json` prints, as far as it is compared."""

    plans: tuple[_Plan, ...]
    requirements: Requirements | None = None


class DiffRow(Struct, frozen=True, kw_only=True):
    """One figure of two plans; `ratio` is that of the second to the first."""

    name: str
    first: float | int | str | None
    second: float | int | str | None
    ratio: float | None


def diff_command(
    first: Annotated[Path, Parameter(help="Output of `plan train --json`")],
    second: Annotated[Path, Parameter(help="Output of another `plan train --json`")],
    /,
    *,
    as_json: Json = False,
) -> None:
    """Compare what two training plans require: GPUs, network, storage, hosts, power, failures."""
    rows = _rows(_read(first), _read(second))
    if as_json:
        print_json({"first": str(first), "second": str(second), "rows": rows})
        return
    cells = [
        [
            NAMES.get(row.name, row.name.replace("_", " ")),
            _text(row.name, row.first),
            _text(row.name, row.second),
            "-" if row.ratio is None else f"{row.ratio:.3g}x",
        ]
        for row in rows
    ]
    show(table("", ["", f">{first.stem}", f">{second.stem}", ">ratio"], cells))


def _read(path: Path) -> tuple[_Plan, Requirements]:
    try:
        report = msgspec.json.decode(read_text(path), type=_Report)
    except msgspec.DecodeError:
        raise InputError(
            "not-a-plan",
            f"`{path}` is not the output of `plan train --json`",
            "write one with `tenfold plan train ... --json > plan.json`",
            file=str(path),
        ) from None
    if not report.plans or report.requirements is None:
        raise InputError(
            "not-a-plan",
            f"`{path}` holds no plan",
            "plan again with a fleet on which the model fits",
            file=str(path),
        )
    return report.plans[0], report.requirements


def _rows(first: tuple[_Plan, Requirements], second: tuple[_Plan, Requirements]) -> list[DiffRow]:
    return [_row(name, one, other) for name, one, other in _pairs(first, second)]


def _pairs(
    first: tuple[_Plan, Requirements], second: tuple[_Plan, Requirements]
) -> list[tuple[str, float | int | str | None, float | int | str | None]]:
    (plan, needed), (other_plan, other_needed) = first, second
    layout = ("step_s", *LAYOUT)
    names = [_model(plan.model), _model(other_plan.model)]
    return [
        ("model", names[0], names[1]),
        *((name, value, getattr(other_needed, name)) for name, value in _fields(needed)),
        *((name, getattr(plan, name), getattr(other_plan, name)) for name in layout),
    ]


def _fields(needed: Requirements) -> list[tuple[str, float | int | None]]:
    return list(structs.asdict(needed).items())


def _model(model: str | dict[str, object]) -> str:
    return model if isinstance(model, str) else "config.json"


def _row(name: str, one: float | int | str | None, other: float | int | str | None) -> DiffRow:
    ratio = None
    if isinstance(one, int | float) and isinstance(other, int | float) and one:
        ratio = other / one
    return DiffRow(name=name, first=one, second=other, ratio=ratio)


def _text(name: str, value: float | int | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if name.endswith("_bytes"):
        return quantity_bytes(value)
    if "bytes_per_s" in name:
        return rate_bytes(value)
    if name.endswith("_s"):
        return duration_text(round(1000 * value))
    if name.endswith("_share"):
        return share(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"
