"""A federated estimate as tables and as JSON."""

import msgspec

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.physics.federated import Round, RoundTime
from tenfold.physics.federated_levers import Lever
from tenfold.report.figures import rate_bytes, share
from tenfold.report.reasons.render import render
from tenfold.study.estimate.federated import FederatedAnswer


def federated_json(answer: FederatedAnswer) -> dict[str, object]:
    """Return an answer for programs."""
    job = answer.job
    return {
        "fleet": answer.fleet,
        "model": answer.model,
        "model_bytes": answer.model_bytes,
        "coordinator": answer.coordinator,
        "local_steps": job.local_steps,
        "compression": job.compression,
        "per_round": job.per_round,
        "quorum": job.quorum,
        "deadline_s": job.deadline_s,
        "sites": _sites_json(answer),
        "round": None if answer.round is None else _round_json(answer.round),
        "synchronous": msgspec.to_builtins(answer.synchronous),
        "levers": msgspec.to_builtins(answer.levers),
        "reasons": msgspec.to_builtins(answer.reasons),
        "assumptions": answer.assumptions,
    }


def _sites_json(answer: FederatedAnswer) -> list[dict[str, object]]:
    times = {} if answer.round is None else {one.site: one for one in answer.round.sites}
    rows: list[dict[str, object]] = []
    for work, site in zip(answer.work, answer.job.sites, strict=True):
        timed = times.get(work.site)
        rows.append(
            {
                **msgspec.to_builtins(work),
                "slowdown": site.slowdown,
                "samples": site.samples,
                "way": msgspec.to_builtins(answer.ways[site.site]),
                "time": None if timed is None else msgspec.to_builtins(timed),
            }
        )
    return rows


def _round_json(one: Round) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(one)
    # Sites are listed next to the round, with their accelerators.
    return {key: value for key, value in fields.items() if key != "sites"}


def show_federated(answer: FederatedAnswer) -> None:
    """Print the round, its sites, the synchronous comparison and the alternatives."""
    job = answer.job
    show(
        f"{answer.fleet}: {answer.model}, {answer.model_bytes / 1e6:,.0f} MB, over "
        f"{len(job.sites)} sites; coordinator {answer.coordinator}"
    )
    if answer.round is None:
        for reason in answer.reasons:
            show(Text(f"no round can complete: {render(reason)} [{reason.code}]", style="bold red"))
    else:
        _show_round(answer, answer.round)
        _show_levers(answer)
    show("", "assumed:")
    for line in answer.assumptions:
        show(f"  {line}")


def _show_round(answer: FederatedAnswer, found: Round) -> None:
    job = answer.job
    drawn = "" if job.per_round == len(job.sites) else f", {job.per_round} sites per round"
    closes = f"it completes after {job.quorum} of {job.per_round} site updates{drawn}"
    show(
        Text(f"a round of {job.local_steps:,} local steps takes {_time(found.round_s)}; {closes}"),
        "",
        table("", ["part", ">time", ">share"], _parts(found)),
        "",
        table(
            "",
            [
                "site",
                "accelerators",
                ">step",
                ">link",
                ">download",
                ">compute",
                ">upload",
                ">total",
                # With a quorum, a round does not wait for the slowest site.
                ">finishes last" if job.quorum == job.per_round else ">completes quorum",
            ],
            _sites(answer, found),
        ),
        "",
        f"{found.rounds_per_day:,.1f} rounds/day, {found.steps_per_day:,.0f} local steps/day",
        f"WAN traffic: {found.wan_bytes_per_round / 1e6:,.0f} MB/round, "
        f"{found.wan_bytes_per_day / 1e9:,.1f} GB/day, ${found.egress_usd_per_day:,.2f}/day",
    )
    if found.succeeds < 1:
        show(f"rounds that reach quorum by the deadline: {share(found.succeeds)}")
    sync = answer.synchronous
    assert sync is not None, "a round has a synchronous counterpart"
    show(
        f"synchronous training instead: {_time(sync.step_s)} per step, "
        f"{_time(sync.exchange_s)} of it between sites; the same number of steps would take "
        f"{_time(sync.round_steps_s)} ({sync.slower:,.1f}x as long) and send "
        f"{sync.wan_bytes / 1e6:,.0f} MB"
    )


def _parts(found: Round) -> list[list[str]]:
    rows: list[list[str]] = []
    for name in RoundTime.__struct_fields__:
        value = float(getattr(found.breakdown_s, name))
        if value > 0:
            rows.append([name.removesuffix("_s"), _time(value), share(value / found.round_s)])
    return rows


def _sites(answer: FederatedAnswer, found: Round) -> list[list[str]]:
    rows: list[list[str]] = []
    for work, site, timed in zip(answer.work, answer.job.sites, found.sites, strict=True):
        rate = site.bytes_per_s
        rows.append(
            [
                work.site,
                f"{work.gpus} x {work.accelerator}",
                _time(work.step_s * site.slowdown),
                "same site" if rate is None else rate_bytes(rate),
                _time(timed.download_s),
                _time(timed.compute_s),
                _time(timed.upload_s),
                _time(timed.total_s),
                share(timed.closes),
            ]
        )
    return rows


def _show_levers(answer: FederatedAnswer) -> None:
    found, job = answer.levers, answer.job
    assert found is not None, "a round has alternatives"
    compressed = [one.quicker for one in found.grid if one.local_steps == job.local_steps]
    longer = [one.quicker for one in found.grid if one.compression == job.compression]
    show(
        "",
        table(
            "alternatives",
            [">local steps", ">compression", ">round", ">transfers", ">steps/day", ">gain"],
            [_lever(one) for one in found.grid],
        ),
        "",
        f"more compression {_helps(max(compressed), found.compression_pays, 'helps')}; "
        f"more local steps {_helps(max(longer), found.more_local_steps_pay, 'help')}",
    )
    if found.local_steps_for_even is not None:
        steps = found.local_steps_for_even
        show(f"compute and communication take equally long at {steps:,} local steps")


def _helps(most: float, does: bool, verb: str) -> str:
    """Return how much a change helps at most; a gain in the table is never denied."""
    gain = f"{most:+.0%}"
    if gain in ("+0%", "-0%"):
        return f"{'do' if verb == 'help' else 'does'} not help"
    return f"{verb}{'' if does else ' little'} (up to {gain})"


def _lever(one: Lever) -> list[str]:
    return [
        f"{one.local_steps:,}",
        f"{one.compression:g}",
        _time(one.round_s),
        share(one.wire_share),
        f"{one.steps_per_day:,.0f}",
        f"{one.quicker:+.0%}",
    ]


def _time(value: float) -> str:
    if value >= 2 * 86_400:
        return f"{value / 86_400:,.1f} d"
    if value >= 2 * 3600:
        return f"{value / 3600:,.1f} h"
    if value >= 120:
        return f"{value / 60:,.1f} min"
    return f"{value:.3g} s"
