"""The names of the ways to choose among nodes that all have room."""

from typing import Literal

Placement = Literal["tenfold", "best-fit", "fgd"]
"""`tenfold` spoils least of what jobs like those of late could use; `best-fit` leaves the
fewest CPUs and GPUs; `fgd` is the published descent of the fragmentation gradient."""

PLACEMENTS: tuple[Placement, ...] = ("tenfold", "best-fit", "fgd")
