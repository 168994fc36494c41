"""`tenfold objects durability`: how likely a layout loses objects, and how long rebuilds take."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter, validators

from tenfold.cli.arguments import AT_LEAST_ONE, Json
from tenfold.cli.output import print_json, show
from tenfold.cli.quantities import parse_number
from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from tenfold.physics.durability import Durability, Redundancy

_POSITIVE = validators.Number(gt=0)


def durability_command(
    *,
    erasure: Annotated[str, Parameter(help="Erasure coding, such as 4+2")] = "",
    replicas: Annotated[
        int | None,
        Parameter(help="Number of copies, instead of --erasure", validator=AT_LEAST_ONE),
    ] = None,
    backends: Annotated[
        int, Parameter(help="Backends that fail independently", validator=AT_LEAST_ONE)
    ],
    capacity_tb: Annotated[
        float, Parameter(help="Stored data per backend in TB", validator=_POSITIVE)
    ],
    failures_per_year: Annotated[
        float,
        Parameter(
            help="Expected failures of one backend in a year, such as 0.014", validator=_POSITIVE
        ),
    ],
    rebuild_mb_per_s: Annotated[float, Parameter(help="Rebuild rate in MB/s", validator=_POSITIVE)],
    detect_hours: Annotated[
        float,
        Parameter(
            help="Assumed hours until a failure is noticed (default: 1)",
            validator=validators.Number(gte=0),
        ),
    ] = 1.0,
    latent_errors_per_year: Annotated[
        float,
        Parameter(
            help="Assumed latent read errors per backend and year (default: 0)",
            validator=validators.Number(gte=0),
        ),
    ] = 0.0,
    scrub_days: Annotated[
        float,
        Parameter(
            help="Assumed days between scrubs (default: 30)",
            validator=validators.Number(gte=0),
        ),
    ] = 30.0,
    objects: Annotated[str, Parameter(help="Number of objects (default: 1e9)")] = "1e9",
    as_json: Json = False,
) -> None:
    """Compute the annual loss probability and the rebuild time of a layout, in closed form.

    Backends fail independently, and you supply every failure rate: measure your own disks.
    """
    from tenfold.physics.durability import Redundancy, durability, rebuild_hours  # noqa: PLC0415

    data_shards, parity_shards = _layout(erasure, replicas)
    if backends < data_shards + parity_shards:
        raise InputError(
            "too-few-domains",
            f"{data_shards + parity_shards} shards need as many backends, got {backends}",
            "raise `--backends`, or use less redundancy",
            field="--backends",
        )
    hours = rebuild_hours(capacity_tb, rebuild_mb_per_s, detect_hours)
    redundancy = Redundancy(
        data_shards=data_shards,
        parity_shards=parity_shards,
        annual_failure_rate=failures_per_year,
        rebuild_hours=hours,
        latent_errors_per_year=latent_errors_per_year,
        scrub_days=scrub_days,
    )
    found = durability(redundancy, parse_number(objects, "--objects"), backends)
    if as_json:
        print_json(_summary(redundancy, found, capacity_tb))
    else:
        _show(redundancy, found, capacity_tb)


def _summary(
    redundancy: "Redundancy", found: "Durability", capacity_tb: float
) -> dict[str, float | int]:
    from tenfold.physics.durability import rebuild_read_tb  # noqa: PLC0415

    return {
        "data_shards": redundancy.data_shards,
        "parity_shards": redundancy.parity_shards,
        "stored_per_byte": redundancy.overhead,
        "rebuild_hours": redundancy.rebuild_hours,
        "rebuild_read_tb": rebuild_read_tb(redundancy, capacity_tb),
        "object_loss_per_year": found.object_loss_per_year,
        "any_loss_per_year": found.any_loss_per_year,
        "nines": found.nines,
        "mean_years_to_loss": found.mean_years_to_loss,
    }


def _show(redundancy: "Redundancy", found: "Durability", capacity_tb: float) -> None:
    from tenfold.physics.durability import rebuild_read_tb  # noqa: PLC0415

    read_tb = rebuild_read_tb(redundancy, capacity_tb)
    layout = f"{redundancy.data_shards}+{redundancy.parity_shards}"
    if redundancy.data_shards == 1:
        layout = f"replicas = {redundancy.shards}"
    show(
        f"layout {layout}:"
        f" {redundancy.overhead:.2f} bytes stored per byte,"
        f" any {redundancy.parity_shards} of {redundancy.shards} shards may be lost",
        f"rebuild of a backend: {redundancy.rebuild_hours:,.1f} hours,"
        f" reads {read_tb:,.1f} TB from the others",
        f"a given object is lost within a year with probability"
        f" {found.object_loss_per_year:.2e} ({found.nines:.1f} nines)",
        f"any object: {found.any_loss_per_year:.2e}"
        f" (objects are on {found.placements:,.0f} distinct sets of backends)",
        "independent failures only: a fire, a flood or a mistake can take out a whole site",
    )


def _layout(erasure: str, replicas: int | None) -> tuple[int, int]:
    """Return data and parity shards of the layout that was asked for."""
    data, plus, parity = erasure.partition("+")
    if replicas is not None and not erasure:
        return 1, replicas - 1
    if replicas is not None or not erasure:
        raise InputError(
            "layout-unknown",
            "one of `--erasure` and `--replicas` must be given",
            "give one of them, such as `--erasure 4+2` or `--replicas 3`",
        )
    if not (plus and data.isdigit() and parity.isdigit() and int(data) > 0):
        raise InputError(
            "layout-unknown",
            f"`--erasure {erasure}` does not name a layout",
            "write data and parity shards, such as `--erasure 4+2`",
            field="--erasure",
        )
    return int(data), int(parity)
