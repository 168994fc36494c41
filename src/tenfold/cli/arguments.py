"""Options that many commands share."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

Facts = Annotated[
    Path | None,
    Parameter(
        help="Directory with data that overrides the built-in data on hardware, prices and models"
    ),
]
Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON")]
AT_LEAST_ONE = validators.Number(gte=1)
NOT_NEGATIVE = validators.Number(gte=0)
Force = Annotated[bool, Parameter(negative="", help="Overwrite an existing file")]
