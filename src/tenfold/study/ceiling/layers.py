"""One layer of a design and the largest job it carries, in GPUs so that layers can be ranked."""

from typing import Literal

from msgspec import Struct

Status = Literal["binds", "free", "unknown"]
CeilingGrade = Literal["stated", "supposed", "assumption"]
"""How well a ceiling is known: every figure stands in the fleet file; some were filled in from
facts about what is usual; some rest on a figure that nobody gave for this fleet.
"""
CEILING_GRADES: tuple[CeilingGrade, ...] = ("stated", "supposed", "assumption")


class LayerCeiling(Struct, frozen=True, kw_only=True):
    """What one layer carries.

    `gpus` is None where the layer binds at no size that was looked at (`free`) and where
    the figures to say so are missing (`unknown`); neither is ranked.
    """

    layer: str
    resource: str
    status: Status
    gpus: int | None
    headroom: float | None
    """The ceiling over the GPUs of today: below 1 the layer binds already."""
    evidence: CeilingGrade | None
    sentence: str
    loss_at_double: float | None = None
    """Share of throughput that a job of twice the ceiling loses to this layer, where known."""


class LayerBuilder(Struct, frozen=True):
    """The name of a layer, the thing in the fleet that it stands for, and the GPUs of today."""

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
        """Return the layer as one that binds at no size that was looked at."""
        return self._open("free", evidence, sentence)

    def unknown(self, sentence: str) -> LayerCeiling:
        """Return the layer as one that the file says too little about."""
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
    """Return the weakest of some grades: a ceiling is known no better than its worst figure."""
    return CEILING_GRADES[max(CEILING_GRADES.index(grade) for grade in grades)]


def ranked(layers: list[LayerCeiling]) -> list[LayerCeiling]:
    """Return layers that bind first, lowest ceiling first, then the free and the unknown."""
    order: tuple[Status, ...] = ("binds", "free", "unknown")
    return sorted(layers, key=lambda one: (order.index(one.status), one.gpus or 0))
