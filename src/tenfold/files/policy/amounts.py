"""Format amounts and times of a policy for people."""

from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, USD, Amounts
from tenfold.model.units import DAY, HOUR, MINUTE, usd


def amount_text(name: str, amount: int) -> str:
    """Return an amount with its unit: `64 H100`, `96 GPUs of any type`, `$250 an hour`."""
    if name == USD:
        return f"${usd(amount):,.2f} an hour".replace(".00 ", " ")
    count = gpus(amount)
    return f"{count} GPUs of any type" if name == ANY else f"{count} {name}"


def gpus(amount: int) -> str:
    """Return milli-GPUs as GPUs."""
    return f"{amount // WHOLE:,}" if amount % WHOLE == 0 else f"{amount / WHOLE:,.3f}".rstrip("0")


def amounts_text(amounts: Amounts) -> str:
    """Return amounts as a short list: `64 H100, 96 any, $250/h`."""
    words = [
        f"${usd(amount):,.2f}/h".replace(".00/", "/") if name == USD else f"{gpus(amount)} {name}"
        for name, amount in amounts.items()
    ]
    return ", ".join(words)


def file_units(amounts: Amounts) -> dict[str, float]:
    """Return amounts in the units of a policy file: GPUs, and `usd_per_hour`."""
    return {
        file_key(name): usd(amount) if name == USD else amount / WHOLE
        for name, amount in amounts.items()
    }


def file_key(name: str) -> str:
    """Return the key of a resource in a policy file."""
    return "usd_per_hour" if name == USD else name


def clock(at_ms: int) -> str:
    """Return a time of day as `08:30`; the end of the day is `24:00`."""
    ms = at_ms if at_ms <= DAY else at_ms - DAY
    return f"{ms // HOUR:02d}:{ms % HOUR // MINUTE:02d}"
