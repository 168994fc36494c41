"""Amounts and times of a policy as people write them."""

from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, USD, Amounts
from tenfold.model.units import DAY, HOUR, MINUTE, usd


def amount_text(name: str, amount: int) -> str:
    """Return an amount with what it counts: `64 H100`, `96 of any type`, `$250 an hour`."""
    if name == USD:
        return f"${usd(amount):,.2f} an hour".replace(".00 ", " ")
    count = gpus(amount)
    return f"{count} GPUs of any type" if name == ANY else f"{count} {name}"


def gpus(amount: int) -> str:
    """Return thousandths of a GPU as GPUs."""
    return f"{amount // WHOLE:,}" if amount % WHOLE == 0 else f"{amount / WHOLE:,.3f}".rstrip("0")


def amounts_text(amounts: Amounts) -> str:
    """Return amounts in a few words: `64 H100, 96 any, $250/h`."""
    words = [
        f"${usd(amount):,.2f}/h".replace(".00/", "/") if name == USD else f"{gpus(amount)} {name}"
        for name, amount in amounts.items()
    ]
    return ", ".join(words)


def file_units(amounts: Amounts) -> dict[str, float]:
    """Return amounts as a file has them: GPUs, and `usd_per_hour`."""
    return {
        file_key(name): usd(amount) if name == USD else amount / WHOLE
        for name, amount in amounts.items()
    }


def file_key(name: str) -> str:
    """Return what a file calls a kind of amount."""
    return "usd_per_hour" if name == USD else name


def clock(at_ms: int) -> str:
    """Return a time after midnight as `08:30`; a day's end is `24:00`."""
    ms = at_ms if at_ms <= DAY else at_ms - DAY
    return f"{ms // HOUR:02d}:{ms % HOUR // MINUTE:02d}"
