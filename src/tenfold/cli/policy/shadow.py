"""`tenfold policy shadow`: how often the shadow policy agrees with the live policy."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import asdict

from tenfold.cli.arguments import Json
from tenfold.cli.output import print_json, show
from tenfold.cli.up.state_dir import StateDirOption
from tenfold.client.endpoint import find_state_dir
from tenfold.files.records.shadow_log import NAME, ShadowEntry, last_entry, latest_entries
from tenfold.model.errors import InputError
from tenfold.report.figures import count, share

SHOWN = 5
LATEST_MOST = 1_000


def shadow_command(
    *,
    state_dir: StateDirOption = None,
    last: Annotated[int, Parameter(help="Number of differences to list (default: 5)")] = SHOWN,
    as_json: Json = False,
) -> None:
    """Show shadow decisions; the help text is in `command`, which imports this lazily."""
    if not 0 <= last <= LATEST_MOST:
        raise InputError(
            "bad-number",
            f"`--last` must be from 0 to {LATEST_MOST:,}, got {last:,}",
            f"use a number from 0 to {LATEST_MOST:,}",
            field="--last",
        )
    path = find_state_dir(state_dir) / NAME
    now = last_entry(path)
    if now is None:
        raise InputError(
            "no-shadow",
            f"no shadow policy has been recorded in `{path}`",
            "start the control plane with `tenfold up --shadow POLICY`",
            file=str(path),
        )
    found = latest_entries(path, last, ("differs",)) if last else []
    found = [entry for entry in found if entry.policy == now.policy]
    print_json(_as_json(now, found)) if as_json else _show(now, found)


def _agreement(now: ShadowEntry) -> float | None:
    return None if not now.cycles else 1 - now.cycles_differing / now.cycles


def _as_json(now: ShadowEntry, found: Sequence[ShadowEntry]) -> dict[str, object]:
    return {
        "policy": now.policy.name,
        "live": now.live,
        "cycles": now.cycles,
        "cycles_differing": now.cycles_differing,
        "agreement": _agreement(now),
        "would_start": now.would_start,
        "would_stop": now.would_stop,
        "passed_over": now.passed_over,
        "seen_until": _when(now),
        "failure": now.failure,
        "differences": [
            {"at": _when(one), "cycle": one.cycle, "said": one.said, **_jobs(one)} for one in found
        ],
    }


def _jobs(one: ShadowEntry) -> dict[str, object]:
    fields = {} if one.difference is None else asdict(one.difference)
    return {name: jobs for name, jobs in fields.items() if name != "at_ms"}


def _show(now: ShadowEntry, found: Sequence[ShadowEntry]) -> None:
    agreed = _agreement(now)
    rate = "no decisions yet"
    if agreed is not None:
        rate = f"agrees in {share(agreed)} of {count(now.cycles, 'cycle')}"
        rate += f", differs in {now.cycles_differing:,}"
    show(
        f"shadow policy `{now.policy.name}`, live policy `{now.live}`: {rate}",
        f"would have started {count(now.would_start, 'job')} sooner "
        f"and stopped {count(now.would_stop, 'job')}",
        f"compared up to {_when(now)} (event {now.seq:,})",
    )
    if now.passed_over:
        show(f"{count(now.passed_over, 'event')} skipped: the shadow had fallen behind")
    if now.failure:
        show(f"the shadow failed and was stopped: {now.failure}")
    for one in found:
        show("", f"{_when(one)}, cycle {one.cycle:,}")
        show(*(f"  {sentence}" for sentence in one.said))


def _when(entry: ShadowEntry) -> str:
    return datetime.fromtimestamp(entry.at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
