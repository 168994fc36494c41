"""A federated job: sites train on data that stays with them and average their models.

A round is: the coordinator sends the model, each site takes some steps on its own data,
sends back what it learned, and the coordinator averages by samples. Seconds, rates and
bytes here are inputs; what they add up to is `physics.federated`.
"""

from msgspec import Struct

from tenfold.model.ids import SiteId


class FederatedSite(Struct, frozen=True, kw_only=True):
    """One site of a job, and its way to the coordinator."""

    site: SiteId
    step_s: float
    """Seconds of one local step on the site's own accelerators."""
    samples: float
    """What the site weighs in the average."""
    slowdown: float = 1.0
    """How much slower than `step_s` it computes, as a straggler does."""
    bytes_per_s: float | None
    """Rate to and from the coordinator; None where it stands in the same site."""
    latency_s: float = 0.0
    usd_per_gb: float = 0.0
    """Price of a gigabyte over all links of the way."""


class FederatedJob(Struct, frozen=True, kw_only=True):
    """What one round is made of.

    `per_round` sites are drawn for each round, and it closes as soon as `quorum` of them
    have answered. A round without its quorum at the deadline is abandoned.
    """

    sites: tuple[FederatedSite, ...]
    model_bytes: float
    local_steps: int
    per_round: int
    quorum: int
    compression: float = 1.0
    """By how much what sites send back is smaller than the model."""
    deadline_s: float | None = None
    average_s: float = 0.0
    """Seconds in which the coordinator averages."""
