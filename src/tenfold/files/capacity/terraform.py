"""Terraform JSON for what a plan rents: instances, and reservations of them."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

PROVIDERS: Mapping[str, str] = {"aws": "hashicorp/aws", "gcp": "hashicorp/google"}
"""Providers whose resources are known, with the source of their plugin."""


class RentedInstances(Struct, frozen=True, kw_only=True):
    """Instances of one offer."""

    name: str
    provider: str
    region: str
    instance_type: str
    on_demand: int
    spot: int
    reserved: int


def can_write(one: RentedInstances) -> bool:
    """Return whether an offer says enough to be written."""
    return one.provider in PROVIDERS and bool(one.region) and bool(one.instance_type)


def terraform_json(rented: Sequence[RentedInstances]) -> bytes:
    """Return the configuration of all offers; each must pass `can_write`."""
    resources: dict[str, dict[str, object]] = {}
    providers: dict[str, list[dict[str, str]]] = {}
    variables: dict[str, object] = {}
    for one in rented:
        alias = _label(one.region)
        name = "aws" if one.provider == "aws" else "google"
        known = providers.setdefault(name, [])
        if not any(entry["alias"] == alias for entry in known):
            known.append({"alias": alias, "region": one.region})
        made = _aws(one, alias) if one.provider == "aws" else _google(one, alias)
        for kind, blocks in made.items():
            resources.setdefault(kind, {}).update(blocks)
        variables[f"image_{alias}"] = _variable(f"Machine image of nodes in {one.region}")
        if one.provider == "gcp" or one.reserved:
            variables[f"zone_{alias}"] = _variable(f"Zone of nodes in {one.region}")
    sources = {name: {"source": PROVIDERS["aws" if name == "aws" else "gcp"]} for name in providers}
    document = {
        "terraform": {"required_providers": sources},
        "provider": providers,
        "variable": variables,
        "resource": resources,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _variable(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


def _aws(one: RentedInstances, alias: str) -> dict[str, dict[str, object]]:
    label = _label(one.name)
    base = {
        "provider": f"aws.{alias}",
        "ami": f"${{var.image_{alias}}}",
        "instance_type": one.instance_type,
        "tags": {"tenfold_offer": one.name},
    }
    made: dict[str, dict[str, object]] = {}
    if one.on_demand:
        made.setdefault("aws_instance", {})[label] = {**base, "count": one.on_demand}
    if one.spot:
        spot = {**base, "count": one.spot, "instance_market_options": [{"market_type": "spot"}]}
        made.setdefault("aws_instance", {})[f"{label}_spot"] = spot
    if one.reserved:
        made["aws_ec2_capacity_reservation"] = {
            label: {
                "provider": f"aws.{alias}",
                "instance_type": one.instance_type,
                "instance_platform": "Linux/UNIX",
                "availability_zone": f"${{var.zone_{alias}}}",
                "instance_count": one.reserved,
            }
        }
    return made


def _google(one: RentedInstances, alias: str) -> dict[str, dict[str, object]]:
    label = _label(one.name)
    base: dict[str, object] = {
        "provider": f"google.{alias}",
        "machine_type": one.instance_type,
        "zone": f"${{var.zone_{alias}}}",
        "boot_disk": [{"initialize_params": [{"image": f"${{var.image_{alias}}}"}]}],
        "network_interface": [{"network": "default"}],
        "labels": {"tenfold_offer": label},
    }
    made: dict[str, dict[str, object]] = {}
    for suffix, count, model in (
        ("", one.on_demand + one.reserved, "STANDARD"),
        ("_spot", one.spot, "SPOT"),
    ):
        if count:
            name = f"{label}{suffix}".replace("_", "-")
            made.setdefault("google_compute_instance", {})[f"{label}{suffix}"] = {
                **base,
                "name": f"{name}-${{count.index}}",
                "count": count,
                "scheduling": [{"provisioning_model": model, "preemptible": model == "SPOT"}],
            }
    return made


def _label(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_") or "offer"
