"""One layer of a design and the largest job it supports, in GPUs so that layers can be ranked."""

from typing import Literal

from msgspec import Struct

Status = Literal["binds", "free", "unknown"]
CeilingGrade = Literal["stated", "supposed", "assumption"]
"""How well a ceiling is known: all figures are in the fleet file; some are defaults from facts;
some are assumptions.
"""
GRADE_WORDS: dict[CeilingGrade, str] = {
    "stated": "stated",
    "supposed": "default",
    "assumption": "assumed",
}
"""Grades by their names on screen."""
TITLES = {
    "gpu-memory": "GPU memory",
    "leaf-uplinks": "Leaf uplinks",
    "pod-uplinks": "Pod uplinks",
    "fabric-ports": "Switch ports",
    "rack-power": "Rack power",
    "site-power": "Site power",
    "storage-read": "Storage reads",
    "storage-streams": "Storage streams",
    "checkpoint-write": "Checkpoint writes",
    "failures": "Failures",
    "scale-up": "Scale-up domain",
    "efficiency": "Scaling efficiency",
}
"""Layers by their names on screen."""
COMPARISONS = ("scale-up", "efficiency")
"""Layers that compare a job with a faster one. Beyond the others, it does not run at all."""
CEILING_GRADES: tuple[CeilingGrade, ...] = ("stated", "supposed", "assumption")


class LayerCeiling(Struct, frozen=True, kw_only=True):
    """The largest job that one layer supports.

    `gpus` is None if the layer is no limit at any size checked (`free`) or if its figures are
    missing (`unknown`); neither is ranked.
    """

    layer: str
    resource: str
    status: Status
    gpus: int | None
    headroom: float | None
    """The ceiling over today's GPUs: below 1 the layer is over its limit today."""
    evidence: CeilingGrade | None
    sentence: str
    loss_at_double: float | None = None
    """Share of throughput that a job of twice the ceiling loses to this layer, if known."""

    @property
    def title(self) -> str:
        """Its name on screen."""
        return TITLES[self.layer]


class LayerBuilder(Struct, frozen=True):
    """The id of a layer, the resource in the fleet, and today's GPUs."""

    layer: str
    resource: str
    gpus_today: int

    def binds(
        self, gpus: int, evidence: CeilingGrade, sentence: str, loss_at_double: float | None = None
    ) -> LayerCeiling:
        """Return the layer with its ceiling."""
        return LayerCeiling(
            layer=self.layer,
            resource=self.resource,
            status="binds",
            gpus=gpus,
            headroom=gpus / self.gpus_today,
            evidence=evidence,
            sentence=sentence,
            loss_at_double=loss_at_double,
        )

    def free(self, evidence: CeilingGrade, sentence: str) -> LayerCeiling:
        """Return the layer as one that is no limit at any size checked."""
        return self._open("free", evidence, sentence)

    def unknown(self, sentence: str) -> LayerCeiling:
        """Return the layer as one with missing figures."""
        return self._open("unknown", None, sentence)

    def _open(self, status: Status, evidence: CeilingGrade | None, sentence: str) -> LayerCeiling:
        return LayerCeiling(
            layer=self.layer,
            resource=self.resource,
            status=status,
            gpus=None,
            headroom=None,
            evidence=evidence,
            sentence=sentence,
        )


def worst(*grades: CeilingGrade) -> CeilingGrade:
    """Return the weakest grade: a ceiling is known no better than its worst figure."""
    return CEILING_GRADES[max(CEILING_GRADES.index(grade) for grade in grades)]


def ranked(layers: list[LayerCeiling]) -> list[LayerCeiling]:
    """Return layers by ceiling, lowest first, then the free and the unknown ones."""
    order: tuple[Status, ...] = ("binds", "free", "unknown")
    return sorted(layers, key=lambda one: (order.index(one.status), one.gpus or 0))
