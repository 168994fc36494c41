"""Identify the accelerator of an inventory node, from its name or from other hints.

Schedulers often count GPUs without a type. A Slurm feature (`a100`) or a cloud instance type
(`p5.48xlarge`) may still identify them.
"""

from msgspec import Struct

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.inventory import InventoryNode

UNNAMED = "gpu"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_VENDORS = ("nvidia-tesla-", "nvidia-geforce-", "nvidia-", "tesla-", "amd-instinct-", "amd-")


class Part(Struct, frozen=True, kw_only=True):
    """An accelerator by its catalogue name or as reported, and its node shape."""

    accelerator: str
    shape: str = ""


def part_of(node: InventoryNode, catalogue: Catalogue, notes: list[str]) -> Part:
    """Return the accelerator of a node; add a note if it is unknown or assumed."""
    shape = catalogue.nodes.find(node.labels.get(INSTANCE_TYPE, ""))
    if shape is not None and (shape.gpus != node.gpus or not node.gpus):
        shape = None
    if not node.gpus:
        return Part(accelerator="")
    if node.accelerator is not None:
        known = _known(node.accelerator, catalogue)
        if known is None:
            notes.append(
                f"accelerator `{node.accelerator}` is not in the facts and is kept as is: add it "
                "to your own facts folder, or use a known name"
            )
            return Part(accelerator=node.accelerator)
        same = shape is not None and shape.accelerator == known
        return Part(accelerator=known, shape=shape.name if shape and same else "")
    if shape is not None and shape.accelerator is not None:
        return Part(accelerator=shape.accelerator, shape=shape.name)
    return Part(accelerator=_from_features(node, catalogue, notes))


def _known(spelled: str, catalogue: Catalogue) -> str | None:
    plain = spelled.casefold().replace("_", "-").replace(" ", "-")
    tries = [spelled, *(plain.removeprefix(v) for v in _VENDORS if plain.startswith(v))]
    for text in tries:
        part = catalogue.accelerators.find(text)
        if part is not None:
            return part.name
    return None


def _from_features(node: InventoryNode, catalogue: Catalogue, notes: list[str]) -> str:
    named: dict[str, str] = {}
    for feature in node.labels.get("features", "").split(","):
        part = catalogue.accelerators.find(feature)
        # Features such as `v4` are CPU levels far more often than TPUs.
        if part is not None and part.kind == "gpu":
            named[part.name] = feature
    if len(named) == 1:
        [(name, feature)] = named.items()
        notes.append(f"GPUs without a type are assumed to be `{name}`, from feature `{feature}`")
        return name
    notes.append(
        f"some nodes report GPUs without a type; their accelerator is set to `{UNNAMED}`: "
        "set the right `accelerator` in their pool"
    )
    return UNNAMED
