"""What drivers mean in GPU-hours, TB and GB/s: the planner works it out, level by level."""

from collections.abc import Iterable, Sequence
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet
from tenfold.decide.layout.serve import ServeRequest, plan_serve
from tenfold.decide.layout.train import plan_train
from tenfold.model.capacity.drivers import Driver
from tenfold.model.errors import InputError
from tenfold.model.plan import ServiceDemand, TrainingJob
from tenfold.model.reason import Misfit
from tenfold.model.units import HOURS_PER_MONTH
from tenfold.study.capacity.calendar import months_until
from tenfold.study.plan.serve import model_shape
from tenfold.study.plan.target import serve_targets, train_target
from tenfold.study.plan.train import train_request

HOURS_PER_DAY = 24.0
MONTHS_PER_YEAR = 12
GB_PER_TB = 1_000.0
SECONDS_PER_MONTH = HOURS_PER_MONTH * 3_600


class DriverNeed(Struct, frozen=True, kw_only=True):
    """A driver in units of capacity: by level low, base and high."""

    driver: Driver
    first: int
    """The first month in which it counts."""
    end: int
    """The month in which it no longer counts."""
    gpus: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """GPUs of its class in use throughout a month."""
    tb_per_month: tuple[float, float, float] = (0.0, 0.0, 0.0)
    budget_usd: tuple[float, float, float] | None = None
    per_unit: str = ""
    """What the planner makes of one unit, in words."""


def driver_needs(
    drivers: Sequence[Driver], fleet: OpenFleet, parts: dict[str, str], start: str, months: int
) -> list[DriverNeed]:
    """Return what each driver takes; `parts` names the accelerator of each class of demand."""
    needs: list[DriverNeed] = []
    for driver in drivers:
        first = max(0, ceil(months_until(start, driver.begins) - 1e-9))
        end = months if not driver.ends else ceil(months_until(start, driver.ends) - 1e-9)
        part = parts[_class_of(driver, parts)]
        need = DriverNeed(driver=driver, first=first, end=min(months, max(first, end)))
        needs.append(_need(need, fleet, part))
    return needs


def _class_of(driver: Driver, parts: dict[str, str]) -> str:
    if driver.demand in parts:
        return driver.demand
    names = ", ".join(f"`{name}`" for name in parts)
    if driver.demand or (len(parts) > 1 and driver.kind in ("training", "gpus", "service")):
        said = f"no class of demand `{driver.demand}`" if driver.demand else "no `demand` stated"
        raise InputError(
            "unknown-demand",
            f"driver `{driver.name}`: {said}",
            f"set `demand` to one of {names}",
            field="demand",
        )
    return next(iter(parts))


def _need(need: DriverNeed, fleet: OpenFleet, part: str) -> DriverNeed:
    values = need.driver.amount.values
    if need.driver.kind == "training":
        hours = run_gpu_hours(need.driver, fleet, part)
        return replace(
            need,
            gpus=_three(value * hours / MONTHS_PER_YEAR / HOURS_PER_MONTH for value in values),
            per_unit=f"{hours:,.0f} GPU-hours per run",
        )
    if need.driver.kind == "service":
        gpus = _three(service_gpus(need.driver, fleet, part, value) for value in values)
        base = need.driver.amount.base
        return replace(need, gpus=gpus, per_unit=f"{gpus[1]:,.0f} GPUs for {base:g} requests/s")
    if need.driver.kind == "dataset":
        return replace(need, tb_per_month=values, per_unit=f"{values[1]:g} TB a month")
    if need.driver.kind == "budget":
        return replace(need, budget_usd=values, per_unit="a budget")
    return replace(need, gpus=values, per_unit="as stated")


def _three(values: Iterable[float]) -> tuple[float, float, float]:
    low, base, high = values
    return low, base, high


def run_gpu_hours(driver: Driver, fleet: OpenFleet, part: str) -> float:
    """Return the GPU-hours of one training run, failures and checkpoints included."""
    job = TrainingJob(model=driver.model, gpus=driver.gpus, tokens=driver.tokens)
    target = train_target(fleet, accelerator=part).target
    answer = plan_train(train_request(job, fleet.catalogue), target)
    if isinstance(answer, Misfit) or not answer.plans or answer.plans[0].run is None:
        raise InputError(
            "no-plan",
            f"driver `{driver.name}`: no layout of `{driver.model}` fits on {part} in this fleet",
            "see why with `tenfold plan train`, or state GPUs with a driver of kind `gpus`",
        )
    best = answer.plans[0]
    assert best.run is not None, "checked above"
    return best.plan.gpus * best.run.days * HOURS_PER_DAY


def service_gpus(driver: Driver, fleet: OpenFleet, part: str, qps: float) -> float:
    """Return the GPUs that serve some requests per second within their targets.

    The reader of driver files sees to it that lengths and targets are stated.
    """
    if not qps:
        return 0.0
    service = ServiceDemand(
        model=driver.model,
        qps=qps,
        input_tokens=driver.input_tokens or 1,
        output_tokens=driver.output_tokens or 1,
        ttft_s=driver.ttft_s or 1.0,
        tpot_s=driver.tpot_s or 1.0,
    )
    shape = model_shape(driver.model, fleet.catalogue)
    name = fleet.catalogue.accelerators.get(part).name
    targets = [one for one in serve_targets(fleet) if one.part.name == name]
    answer = plan_serve(ServeRequest(service=service, shape=shape), targets)
    if isinstance(answer, Misfit) or not answer.plans:
        raise InputError(
            "no-plan",
            f"driver `{driver.name}`: `{driver.model}` cannot be served on {part} in this fleet",
            "see why with `tenfold plan serve`, or state GPUs with a driver of kind `gpus`",
        )
    return float(answer.plans[0].gpus)
