"""Efficiency profiles of serving engines and training stacks, as facts."""

from typing import Literal

import msgspec

from tenfold.model.facts.fact import Fact

EngineScope = Literal["generic", "family", "version", "accelerator"]


class EngineProfile(Fact, frozen=True, kw_only=True):
    """One layer of a serving engine's profile.

    The generic row holds the efficiencies; a version and an accelerator change them by
    factors (`change`); a family describes its published runs. `rows` is the number of
    measurements it is fitted to and `residual` their error, as a logarithm.
    """

    scope: EngineScope
    family: str = ""
    version: str = ""
    accelerator: str = ""
    rows: int = 0
    residual: float | None = None
    efficiency: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    limits: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    residual_by_mode: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    residual_unseen: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    change: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    requests: tuple[tuple[float, float, float], ...] = ()
    requests_usual: float | None = None
    requests_online: float | None = None
    gateway_s: float = 0.005
    poll_steps: float = 0.0
    attention_dp_from: str = ""


class StackProfile(Fact, frozen=True, kw_only=True):
    """The profile of a training stack, general or specific.

    Names are `default`, `family`, `family@generation` or `stack:version@generation`.
    `values` are the fields of a training profile and `spread` their standard deviations, in
    logarithms (or logits, for shares).
    """

    family: str
    rows: int
    residual: float
    values: dict[str, float]
    spread: dict[str, float]


class StackCorrection(Fact, frozen=True, kw_only=True):
    """Corrections near published runs of a family on an accelerator generation."""

    stacks: tuple[str, ...]
    accelerators: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
