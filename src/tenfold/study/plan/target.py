"""From a fleet to a planning target: identical accelerators on one fabric."""

import numpy as np
from msgspec import Struct

from tenfold.compose.fleet import OpenFleet, choose_accelerator
from tenfold.decide.layout.request import PlanningTarget, Power
from tenfold.decide.layout.serve import ServeTarget
from tenfold.model.errors import InputError
from tenfold.model.estimate import TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.facility import FailurePreset
from tenfold.model.fleet.spec import Pool
from tenfold.model.units import usd
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.network import pool_network, server_ports
from tenfold.physics.operations.goodput import Reliability
from tenfold.physics.serving.engines import catalog_of
from tenfold.physics.serving.engines import resolve as resolve_engine
from tenfold.physics.training.calibration import Calibration
from tenfold.physics.training.catalog import resolve
from tenfold.physics.training.names import generation_of
from tenfold.physics.training.shapes import training_part
from tenfold.report.figures import count
from tenfold.study.estimate.fill import calibrated, fill
from tenfold.study.plan.exchange import AS_IS, Exchange, exchanged

DEFAULT_STACKS = {"cuda": "megatron-core", "xla": "maxtext"}
DEFAULT_ENGINE = "vllm"
DEFAULT_FAILURES = "llama-3"
WRITE_OVER_READ = 0.5
"""Local drives write at about half of what they read; an assumption where no tier is stated."""


class ChosenTarget(Struct, frozen=True, kw_only=True):
    """A planning target, and how it was chosen."""

    target: PlanningTarget
    stack_calibration: Calibration
    """That of the stack as it is, before gradients are compressed or overlap is turned off."""
    pools: tuple[str, ...]
    price_basis: str
    failures: str
    notes: tuple[str, ...]


def train_target(
    fleet: OpenFleet,
    *,
    accelerator: str | None = None,
    stack: str | None = None,
    failures: str | None = None,
    exchange: Exchange = AS_IS,
    observed: list[TrainRow] | None = None,
) -> ChosenTarget:
    """Return the largest set of identical accelerators of a fleet that share a fabric."""
    catalogue = fleet.catalogue
    pools = _pools(fleet, accelerator)
    first = pools[0]
    part = catalogue.accelerators.get(first.accelerator or "")
    used = stack or DEFAULT_STACKS.get(part.runtime)
    entry = resolve(catalogue, used, part.name)
    notes = list(entry.notes)
    if stack is None and used is not None:
        notes = [f"no stack given; assuming `{used}`", *notes]
    notes.extend(_network_note(first, fleet.catalogue))
    notes.extend(_unused(observed or [], entry.family, part.name, catalogue))
    preset = catalogue.failures.get(failures or DEFAULT_FAILURES)
    calibration = _calibration(catalogue, used, part.name, observed or [])
    target = _target(
        fleet, pools, preset, exchanged(calibration, exchange or Exchange()), used or ""
    )
    return ChosenTarget(
        target=target,
        stack_calibration=calibration,
        pools=tuple(pool.id for pool in pools),
        price_basis=first.price.basis if first.price else "no price known",
        failures=preset.name,
        notes=tuple(notes),
    )


def _network_note(pool: Pool, catalogue: Catalogue) -> list[str]:
    """Say which network is assumed where neither the file nor the facts describe it."""
    part = catalogue.accelerators.find(pool.accelerator or "")
    stated = not {"nic_gbps", "nics_per_node"} & set(pool.defaulted)
    if part is None or pool.shape is not None or stated:
        return []
    like = server_ports(part, pool.gpus_per_node, catalogue).like
    known = f"as in {like}, per GPU" if like else f"no server with {part.name} is known"
    rate = pool.nic_bandwidth * 8 / 1e9
    return [
        f"network of {pool.nics_per_node} x {rate:g} Gbit/s per node assumed: {known}; "
        "set `nics_per_node` and `nic_gbps`"
    ]


def _target(
    fleet: OpenFleet, pools: list[Pool], preset: FailurePreset, own: Calibration, stack: str
) -> PlanningTarget:
    first = pools[0]
    part = fleet.catalogue.accelerators.get(first.accelerator or "")
    fabric = next((one for one in fleet.layout.fabrics if one.name == first.fabric), None)
    network = pool_network(fleet.layout, first, fleet.catalogue)
    return PlanningTarget(
        accelerator=part.name,
        part=training_part(part),
        calibration=own,
        stack=stack,
        gpus=sum(pool.gpus for pool in pools),
        gpus_per_node=first.gpus_per_node,
        scaleup_gpus=first.scaleup_gpus,
        nic_bytes_per_s=network.bytes_per_s,
        spine_share=network.spine_share,
        delays_s=(network.leaf_delay_s, network.pod_delay_s, network.far_delay_s),
        nodes_per_leaf=_free_nodes(fabric) if fabric else first.nodes,
        nodes_per_pod=(fabric.nodes_per_leaf * fabric.leaves_per_pod) if fabric else first.nodes,
        leaf_oversubscription=fabric.oversubscription if fabric else 1.0,
        pod_oversubscription=fabric.core_oversubscription if fabric else 1.0,
        usd_per_gpu_hour=_price(pools),
        power=_power(fleet, first),
        reliability=_reliability(preset),
        checkpoint_bytes_per_s=_checkpoint_rate(fleet, pools),
    )


def _free_nodes(fabric: FabricPlan) -> int:
    """Return how many nodes communicate at full rate: a leaf, or a whole dragonfly group."""
    if fabric.kind == "dragonfly":
        return fabric.nodes_per_leaf * fabric.leaves_per_pod
    return fabric.nodes_per_leaf


def _reliability(preset: FailurePreset) -> Reliability:
    return Reliability(
        failures_per_node_day=np.array([preset.failures_per_1000_node_days / 1000]),
        gpus_per_node=np.array([float(preset.gpus_per_node)]),
        detection_s=np.array([preset.detection_s]),
        restart_s=np.array([preset.restart_s]),
        queue_s=np.array([0.0]),
    )


def _pools(fleet: OpenFleet, accelerator: str | None) -> list[Pool]:
    wanted = None if accelerator is None else fleet.catalogue.accelerators.get(accelerator).name
    groups: dict[tuple[str, str, int], list[Pool]] = {}
    for pool in fleet.spec.pools:
        if pool.gpus and pool.accelerator and wanted in (None, pool.accelerator):
            key = (pool.accelerator, pool.fabric or "", pool.gpus_per_node)
            groups.setdefault(key, []).append(pool)
    if not groups:
        raise InputError(
            "no-accelerators",
            f"fleet `{fleet.spec.name}` has no {wanted or 'accelerators'}",
            choose_accelerator(fleet.spec),
        )
    return max(groups.values(), key=lambda pools: sum(pool.gpus for pool in pools))


def _calibration(
    catalogue: Catalogue, stack: str | None, part: str, observed: list[TrainRow]
) -> Calibration:
    """Return the stack's profile, moved by the observed runs of its family."""
    entry = resolve(catalogue, stack, part)
    seen = [fill(row, catalogue) for row in observed if row.step_s is not None]
    group = (entry.family, generation_of(part))
    own = [one for one in seen if (one.entry.family, generation_of(one.part.name)) == group]
    return calibrated(entry, own)


def _unused(observed: list[TrainRow], family: str, part: str, catalogue: Catalogue) -> list[str]:
    """Say which observed runs belong to other stacks or accelerators and are not used."""
    seen = [fill(row, catalogue) for row in observed]
    group = (family, generation_of(part))
    other = [one for one in seen if (one.entry.family, generation_of(one.part.name)) != group]
    if not other:
        return []
    stacks = ", ".join(dict.fromkeys(one.config.stack or "no stack" for one in other))
    return [f"{count(len(other), 'observed run')} ignored: different stack ({stacks})"]


def _power(fleet: OpenFleet, pool: Pool) -> Power:
    part = fleet.catalogue.accelerators.get(pool.accelerator or "")
    site = next(one for one in fleet.spec.sites if one.id == pool.site)
    node_w = pool.power_w_per_node
    tdp_w = part.tdp_w or node_w / max(1, pool.gpus_per_node)
    return Power(
        tdp_w=tdp_w,
        server_overhead=max(1.0, node_w / (tdp_w * pool.gpus_per_node)),
        pue=site.pue,
        co2_g_per_kwh=site.co2_g_per_kwh,
    )


def _price(pools: list[Pool]) -> float:
    """Return dollars per GPU-hour over pools, weighted by GPUs; 0 where none has a price."""
    priced = [pool for pool in pools if pool.price is not None]
    gpus = sum(pool.gpus for pool in priced)
    spent = sum(pool.price.usd_micros_per_hour * pool.gpus for pool in priced if pool.price)
    return usd(spent) / gpus if gpus else 0.0


def _checkpoint_rate(fleet: OpenFleet, pools: list[Pool]) -> float:
    """Return bytes per second of the site's fastest storage tier, else of local drives."""
    site = pools[0].site
    tiers = [tier for tier in fleet.spec.tiers if tier.site == site and tier.role != "memory"]
    rates = [float(tier.write_bandwidth) for tier in tiers]
    if rates:
        return max(rates)
    return max(1e9, sum(pool.nodes * pool.nvme_bandwidth for pool in pools) * WRITE_OVER_READ)


def serve_targets(fleet: OpenFleet, *, engine: str | None = None) -> list[ServeTarget]:
    """Return every pool of a fleet that could serve."""
    engines = catalog_of(fleet.catalogue.engines)
    targets: list[ServeTarget] = []
    for pool in fleet.spec.pools:
        part = fleet.catalogue.accelerators.find(pool.accelerator or "")
        # Services do not use pools reserved for experiments.
        if part is None or not pool.gpus or pool.use == "experiments":
            continue
        used = engine or DEFAULT_ENGINE
        targets.append(
            ServeTarget(
                pool=pool.id,
                part=part,
                profile=resolve_engine(engines, used, part.name),
                engine=used,
                gpus=pool.gpus,
                gpus_per_node=pool.gpus_per_node,
                scaleup_gpus=min(pool.scaleup_gpus, pool.gpus),
                network_bytes_per_s=pool_network(fleet.layout, pool, fleet.catalogue).bytes_per_s,
                usd_per_gpu_hour=usd(pool.price.usd_micros_per_hour) if pool.price else 0.0,
            )
        )
    return targets
