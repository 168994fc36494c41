"""A federated job: sites train on local data, and a coordinator averages their models.

In a round, the coordinator sends the model, each site runs some steps on its own data and
sends its update back, and the coordinator averages them by samples. Seconds, rates and
bytes here are inputs; `physics.federated` computes the round from them.
"""

from msgspec import Struct

from tenfold.model.ids import SiteId


class FederatedSite(Struct, frozen=True, kw_only=True):
    """One site of a job, and its path to the coordinator."""

    site: SiteId
    step_s: float
    """Seconds of one local step on the site's own accelerators."""
    samples: float
    """The site's weight in the average."""
    slowdown: float = 1.0
    """How much slower than `step_s` it computes, as a straggler does."""
    bytes_per_s: float | None
    """Rate to and from the coordinator; None if it is at the same site."""
    latency_s: float = 0.0
    usd_per_gb: float = 0.0
    """Price per gigabyte over all links of the path."""


class FederatedJob(Struct, frozen=True, kw_only=True):
    """The parameters of a round.

    `per_round` sites are sampled for each round, which closes as soon as `quorum` of them
    have answered. A round without quorum at the deadline is abandoned.
    """

    sites: tuple[FederatedSite, ...]
    model_bytes: float
    local_steps: int
    per_round: int
    quorum: int
    compression: float = 1.0
    """Compression factor of what sites send back."""
    deadline_s: float | None = None
    average_s: float = 0.0
    """Seconds that the coordinator takes to average."""
