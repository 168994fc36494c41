"""What software makes of hardware: serving engines and training stacks, as facts."""

from typing import Literal

import msgspec

from tenfold.model.facts.fact import Fact

EngineScope = Literal["generic", "family", "version", "accelerator"]


class EngineProfile(Fact, frozen=True, kw_only=True):
    """One layer of what is known of serving engines.

    The generic row holds the efficiencies; a version and an accelerator change them by
    factors (`change`); a family says how its published runs are made. `rows` is how many
    measurements stand behind a row and `residual` how far off they were, as a logarithm.
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
    attention_dp_from: str = ""


class StackProfile(Fact, frozen=True, kw_only=True):
    """A training stack, as widely or narrowly as it is known.

    Names are `default`, `family`, `family@generation` or `stack:version@generation`.
    `values` are the fields of a physics profile and `spread` how far each may be off, in
    logarithms (or logits, for shares).
    """

    family: str
    rows: int
    residual: float
    values: dict[str, float]
    spread: dict[str, float]


class StackCorrection(Fact, frozen=True, kw_only=True):
    """What published runs of a family on a generation add to its profile near them."""

    stacks: tuple[str, ...]
    accelerators: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
