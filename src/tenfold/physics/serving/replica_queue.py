"""The queue of a replicated service as a fluid: how many requests wait, and which share too long.

Time goes in steps of some seconds. All functions take arrays, so that many numbers of replicas are
followed at once. Within a step, requests at once are a normal distribution around their mean:
slots are idle at times while requests wait at others.
"""

from math import exp

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHANCE = 0.5
"""Variance of the requests at once within a step, for each request at once of equal length. It is
1 for a Poisson process; steps already show a part. Fitted to simulations of each request."""
LOGISTIC = 0.55
"""Scale of the logistic distribution with the variance of a normal one."""
PATIENCE = 20.0
"""Requests in the system are cut off at this many times those that the slots hold: others would
have been shed, and an overload of hours must not look like one of days."""


class Service:
    """How long requests take, at the moment."""

    def __init__(self, service_s: float, wait_s: float, variability: float) -> None:
        self.service_s = service_s
        """Mean time of a request in its slot."""
        self.wait_s = wait_s
        """Time that a request may wait for a slot."""
        self.variance = CHANCE * variability
        """Of requests at once, for each; `variability` is 1 if all take equally long."""


def served(present: Floats, arrivals: float, slots: Floats, now: Service, step_s: float) -> Floats:
    """Return the requests present after a step: those in slots leave."""
    kept = exp(-step_s / now.service_s)
    busy = present * ((1 - kept) * now.service_s / step_s)
    busy += arrivals * (now.service_s / step_s - (1 - kept) * (now.service_s / step_s) ** 2)
    scale = LOGISTIC * np.sqrt(now.variance * np.maximum(busy, 0.25))
    # Expected requests beyond the slots: zero far below them, the difference far above.
    excess = scale * np.logaddexp(0, (busy - slots) / scale)
    leave = np.maximum(busy - excess, 0) * (step_s / now.service_s)
    leave = np.minimum(leave, slots * (step_s / now.service_s))
    most = (slots + arrivals) * PATIENCE + 1
    return np.minimum(present + arrivals - leave, most)


def missed_share(
    present: Floats, since: int, slots: Floats, now: Service, waited_s: float
) -> Floats:
    """Return the share of the requests which arrived `waited_s` ago that wait too long.

    `since` is the number of requests that arrived after them.
    """
    within = since + slots * (1 + (now.wait_s - waited_s) / now.service_s)
    scale = LOGISTIC * np.sqrt(now.variance * np.maximum(present, 0.25))
    late = 1 / (1 + np.exp(np.clip((within - present) / scale, -40, 40)))
    # Without a slot nothing is chance: who is not served waits.
    late[slots < 0.5] = np.clip(present[slots < 0.5] - since, 0, 1)
    return late


def slots_for(load: Floats, now: Service, sigmas: float) -> Floats:
    """Return slots with which `load` requests at once, and their spread, wait no longer."""
    spread = sigmas * np.sqrt(now.variance * load)
    return np.maximum(load, (load + spread) / (1 + now.wait_s / now.service_s))
