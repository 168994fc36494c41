"""Energy and carbon of accelerator time: load-dependent power, server overhead, PUE, grid."""

from dataclasses import dataclass

import numpy as np

from tenfold.model.fleet.facility import IDLE_POWER_SHARE
from tenfold.physics.arrays import Floats

_J_PER_KWH = 3.6e6
# Figures of the notes: servers draw 1.3 times their accelerators, hyperscale PUE is 1.1 to 1.2
# and the average 1.4 to 1.6; without an hourly grid figure 400 g/kWh is assumed.
SERVER_OVERHEAD_DEFAULT = 1.3
PUE_DEFAULT = 1.3
GRID_G_PER_KWH_DEFAULT = 400.0
IDLE_SHARE_DEFAULT = IDLE_POWER_SHARE


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a stretch of accelerator time takes from the grid."""

    energy_kwh: Floats
    co2e_kg: Floats
    power_kw_mean: Floats


def gpu_power_w(
    tdp_w: Floats, load_share: Floats, idle_share: Floats | float = IDLE_SHARE_DEFAULT
) -> Floats:
    """Return the draw at a load between idle and TDP; concave, as clocks fall before power does."""
    busy = np.clip(load_share, 0.0, 1.0) ** 0.8
    return tdp_w * (idle_share + (1.0 - idle_share) * busy)


def footprint(
    gpus: Floats,
    seconds: Floats,
    power_w: Floats,
    *,
    server_overhead: Floats | float = SERVER_OVERHEAD_DEFAULT,
    pue: Floats | float = PUE_DEFAULT,
    grid_g_per_kwh: Floats | float = GRID_G_PER_KWH_DEFAULT,
) -> Footprint:
    """Return energy and carbon of `gpus` at `power_w` each for `seconds`, facility included."""
    wall_w = gpus * power_w * server_overhead * pue
    energy_kwh = wall_w * seconds / _J_PER_KWH
    return Footprint(energy_kwh, energy_kwh * grid_g_per_kwh / 1000.0, wall_w / 1000.0)
