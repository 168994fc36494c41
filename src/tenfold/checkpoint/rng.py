"""Save and restore random generator states, so a resumed run draws the same numbers.

For a generator of your own, save `random.Random.getstate()` or the `state` of a numpy bit generator
as a value.
"""

import random
import sys
from typing import Any, cast


def random_states() -> dict[str, Any]:
    """Return the states of the global generators of Python, numpy and torch.

    numpy and torch are included if the program has imported them.
    """
    states: dict[str, Any] = {"python": random.getstate()}
    numpy, torch = _loaded("numpy.random"), _loaded("torch")
    if numpy is not None:
        states["numpy"] = numpy.get_state()
    if torch is not None:
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def restore_random(states: dict[str, Any]) -> None:
    """Restore saved states of the global generators.

    Import numpy and torch first if the program uses them; accelerator states are restored if the
    number of devices is the same.
    """
    random.setstate(states["python"])
    numpy, torch = _loaded("numpy.random"), _loaded("torch")
    if numpy is not None and "numpy" in states:
        numpy.set_state(states["numpy"])
    if torch is not None and "torch" in states:
        torch.set_rng_state(states["torch"])
        cuda = states.get("cuda", [])
        if cuda and torch.cuda.is_available() and torch.cuda.device_count() == len(cuda):
            torch.cuda.set_rng_state_all(cuda)


def _loaded(name: str) -> Any:
    return cast("Any", sys.modules.get(name))
