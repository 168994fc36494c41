"""`tenfold estimate cache`: the hit ratio and time saved by a shared KV-cache tier."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from msgspec.structs import replace

from tenfold.cli.arguments import Json
from tenfold.cli.options import options_from
from tenfold.cli.output import print_json, show, table
from tenfold.cli.screen import Text
from tenfold.files.core.json_lines import read_json_lines
from tenfold.files.traces.prefix_trace import BLOCK_TOKENS, PrefixRow
from tenfold.model.errors import InputError
from tenfold.model.units import GIB
from tenfold.report.figures import quantity_bytes, rate_bytes, share
from tenfold.report.pages.plan.words import seconds
from tenfold.study.estimate.cache.cache import CacheAnswer, estimate_cache
from tenfold.study.estimate.cache.tier import CacheQuestion
from tenfold.study.estimate.cache.traffic import SharedPrefixes, Traffic, traced

AT_LEAST_ONE = validators.Number(gte=1, lte=10**9)
PREFIXES = validators.Number(gte=1, lte=1_000_000)
ZIPF = validators.Number(gte=0, lte=10)
DEFAULT_ZIPF = 0.8
"""Breslau et al. (INFOCOM 1999) found 0.64 to 0.83 for web pages; for prompts an assumption."""


@dataclass(frozen=True, kw_only=True)
class TrafficOptions:
    """The prefixes that prompts share: described by options, or read from a trace."""

    input_tokens: Annotated[
        int | None, Parameter(help="Prompt length in tokens", validator=AT_LEAST_ONE)
    ] = None
    shared_tokens: Annotated[
        int | None, Parameter(help="Length of the shared prefix in tokens", validator=AT_LEAST_ONE)
    ] = None
    prefixes: Annotated[
        int | None, Parameter(help="Number of distinct prefixes", validator=PREFIXES)
    ] = None
    zipf: Annotated[
        float | None,
        Parameter(
            help="Zipf exponent of prefix popularity, 0 for uniform (default: 0.8)", validator=ZIPF
        ),
    ] = None
    trace: Annotated[
        Path | None,
        Parameter(help="Trace of prompt blocks as JSON Lines, instead of the prefix options"),
    ] = None
    block_tokens: Annotated[
        int,
        Parameter(
            help=f"Tokens per block of --trace (default: {BLOCK_TOKENS})", validator=AT_LEAST_ONE
        ),
    ] = BLOCK_TOKENS

    def traffic(self) -> Traffic:
        """Return the traffic, or raise an error that names what is missing."""
        if self.trace is not None:
            return traced(read_json_lines(self.trace, PrefixRow), self.block_tokens)
        if self.input_tokens is None or self.shared_tokens is None or self.prefixes is None:
            raise InputError(
                "traffic-not-stated",
                "no shared prefixes given",
                "set `--input-tokens`, `--shared-tokens` and `--prefixes`, or use `--trace`",
            )
        if self.shared_tokens > self.input_tokens:
            raise InputError(
                "prefix-too-long",
                f"`--shared-tokens` is {self.shared_tokens:,}, more than the "
                f"{self.input_tokens:,} tokens of a prompt",
                "lower `--shared-tokens`",
                field="--shared-tokens",
            )
        return SharedPrefixes(
            prompt_tokens=float(self.input_tokens),
            shared_tokens=float(self.shared_tokens),
            prefixes=self.prefixes,
            zipf=DEFAULT_ZIPF if self.zipf is None else self.zipf,
        )

    def notes(self) -> tuple[str, ...]:
        """Return the assumptions made."""
        if self.trace is not None or self.zipf is not None:
            return ()
        return (f"prefix popularity assumed: Zipf with exponent {DEFAULT_ZIPF:g} (set --zipf)",)


NO_TRAFFIC = TrafficOptions()


@options_from(CacheQuestion)
def cache_command(
    question: CacheQuestion,
    *,
    prompts: Annotated[TrafficOptions, Parameter(name="*")] = NO_TRAFFIC,
    as_json: Json = False,
) -> None:
    """Estimate the hit ratio of a shared KV-cache tier, and the time it saves per request.

    Describe the shared prefixes with options, or pass a trace of prompt blocks. The output also
    shows the size needed for a target hit ratio, and when recomputing is faster than fetching.
    """
    answer = estimate_cache(question, prompts.traffic())
    answer = replace(answer, notes=(*answer.notes, *prompts.notes()))
    if as_json:
        print_json(answer)
    else:
        show_cache(answer)


def show_cache(answer: CacheAnswer) -> None:
    """Print the effect of the tier, of other sizes, and when it stops helping."""
    show(
        f"{answer.model} in {answer.precision} on {answer.gpus} x {answer.accelerator}, prompts of "
        f"{answer.prompt_tokens:,.0f} tokens; {answer.tier or 'the tier'} holds "
        f"{_gib(answer.tier_gib)} and reads {rate_bytes(answer.tier_gb_per_s * 1e9)}",
        "",
        f"hit ratio: {share(answer.hit_ratio)} of tokens (maximum {share(answer.hit_ratio_max)})",
        _ttft(answer),
        _target(answer),
        _fetching(answer),
        "",
    )
    rows = [
        [_gib(one.gib), share(one.hit_ratio), seconds(one.saved_s) if one.saved_s else "0 s"]
        for one in answer.sizes
    ]
    show(table("", [">tier size", ">hit ratio", ">saved per request"], rows))
    for note in answer.notes:
        show(Text(f"note: {note}", style="dim"))


def _ttft(answer: CacheAnswer) -> str:
    without = seconds(answer.ttft_s)
    if not answer.saved_s:
        return f"TTFT: {without}, with or without the tier"
    change = -answer.saved_s / answer.ttft_s
    return f"TTFT: {seconds(answer.ttft_with_tier_s)} instead of {without} ({change:+.0%})"


def _gib(gib: float) -> str:
    return quantity_bytes(gib * GIB) if gib >= 10 else f"{gib:.2g} GiB"


def _target(answer: CacheAnswer) -> str:
    if answer.target_gib is None:
        return f"no tier size reaches {share(answer.target)}: the other tokens are never reused"
    return f"a hit ratio of {share(answer.target)} needs {_gib(answer.target_gib)}"


def _fetching(answer: CacheAnswer) -> str:
    even = rate_bytes(answer.break_even_gb_per_s * 1e9)
    got = rate_bytes(answer.fetch_gb_per_s * 1e9)
    if not answer.fetch_pays:
        return f"recomputing is faster: a fetch gets {got} and needs {even} to break even"
    text = f"a fetch gets {got}; below {even}, recomputing is faster"
    if answer.qps_break_even is None:
        return text
    load = answer.qps_break_even
    words = f"{load:,.0f}" if load >= 100 else f"{load:.3g}"
    return f"{text} (reached at {words} requests/s)"
