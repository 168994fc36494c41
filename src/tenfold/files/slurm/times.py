"""Parse Slurm times: `30`, `5:00`, `1:30:00`, `7-0`, `1-02:03:04`, `UNLIMITED`.

A bare number is minutes in `slurm.conf` and in limits; one colon is minutes and seconds.
"""

import re

DAY_S = 86_400.0
ENDLESS = ("unlimited", "infinite", "partition_limit", "invalid", "-1")
_TIME = re.compile(r"(?:(?P<days>\d{1,6})-)?(?P<rest>\d{1,9}(?::\d{1,9}){0,2}(?:\.\d+)?)\Z")


def slurm_seconds(text: str, *, bare_s: float = 60.0) -> float | None:
    """Return seconds, or None for no limit; raise `ValueError` if it is not a time.

    `bare_s` is the unit, in seconds, of a number without colons.
    """
    plain = text.strip()
    if plain.lower() in ENDLESS:
        return None
    match = _TIME.match(plain)
    if match is None:
        raise ValueError(f"`{plain[:40]}` is not a Slurm time")
    parts = [float(part) for part in match["rest"].split(":")]
    if match["days"] is not None:
        hours, minutes, seconds = [*parts, 0.0, 0.0][:3]
        return int(match["days"]) * DAY_S + hours * 3_600 + minutes * 60 + seconds
    if len(parts) == 1:
        return parts[0] * bare_s
    if len(parts) == 2:
        return parts[0] * 60 + parts[1]
    return parts[0] * 3_600 + parts[1] * 60 + parts[2]
