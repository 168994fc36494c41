"""`tenfold estimate cache`: what a shared tier of KV cache saves."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from msgspec.structs import replace
from rich.text import Text

from tenfold.cli.options import options_from
from tenfold.cli.output import print_json, show, table
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
"""Breslau et al. (INFOCOM 1999) found 0.64 to 0.83 for pages of the web; of prompts an
assumption."""

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print JSON.")]


@dataclass(frozen=True, kw_only=True)
class TrafficOptions:
    """What prompts share: as stated, or as a trace has it."""

    input_tokens: Annotated[
        int | None, Parameter(help="Tokens of a prompt.", validator=AT_LEAST_ONE)
    ] = None
    shared_tokens: Annotated[
        int | None, Parameter(help="Of these, tokens of a shared prefix.", validator=AT_LEAST_ONE)
    ] = None
    prefixes: Annotated[int | None, Parameter(help="Distinct prefixes.", validator=PREFIXES)] = None
    zipf: Annotated[
        float | None, Parameter(help="Exponent of their popularity; 0 is even.", validator=ZIPF)
    ] = None
    trace: Annotated[
        Path | None, Parameter(help="Blocks of real prompts instead, as JSON Lines.")
    ] = None
    block_tokens: Annotated[
        int, Parameter(help="Tokens of a block of --trace.", validator=AT_LEAST_ONE)
    ] = BLOCK_TOKENS

    def traffic(self) -> Traffic:
        """Return the traffic, or say what is missing of it."""
        if self.trace is not None:
            return traced(read_json_lines(self.trace, PrefixRow), self.block_tokens)
        if self.input_tokens is None or self.shared_tokens is None or self.prefixes is None:
            raise InputError(
                "traffic-not-stated",
                "what prompts share is not known",
                "say `--input-tokens`, `--shared-tokens` and `--prefixes`, or give a `--trace`",
            )
        if self.shared_tokens > self.input_tokens:
            raise InputError(
                "prefix-too-long",
                f"a prefix of {self.shared_tokens:,} tokens is longer than its prompt of "
                f"{self.input_tokens:,}",
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
        """Return what was supposed."""
        if self.trace is not None or self.zipf is not None:
            return ()
        return (f"popularity by Zipf's law with exponent {DEFAULT_ZIPF:g} supposed; say --zipf",)


NO_TRAFFIC = TrafficOptions()


@options_from(CacheQuestion)
def cache_command(
    question: CacheQuestion,
    *,
    prompts: Annotated[TrafficOptions, Parameter(name="*")] = NO_TRAFFIC,
    as_json: Json = False,
) -> None:
    """Estimate the hit ratio of a shared KV-cache tier, and the time that it saves a request.

    Prompts share prefixes as stated, or as a trace of their blocks has them. Says what
    size a hit ratio takes, and when computing a prefix again is sooner than fetching it.
    """
    answer = estimate_cache(question, prompts.traffic())
    answer = replace(answer, notes=(*answer.notes, *prompts.notes()))
    if as_json:
        print_json(answer)
    else:
        show_cache(answer)


def show_cache(answer: CacheAnswer) -> None:
    """Print what the tier does, what other sizes would do, and when it does nothing."""
    show(
        f"{answer.model} in {answer.precision} on {answer.gpus} x {answer.accelerator}, prompts of "
        f"{answer.prompt_tokens:,.0f} tokens; {answer.tier or 'the tier'} holds "
        f"{_gib(answer.tier_gib)} and reads {rate_bytes(answer.tier_gb_per_s * 1e9)}",
        "",
        f"hit ratio {share(answer.hit_ratio)} of tokens, of {share(answer.hit_ratio_max)} at most",
        f"first token after {seconds(answer.ttft_with_tier_s)} instead of "
        f"{seconds(answer.ttft_s)}: {seconds(answer.saved_s)} saved a request",
        _target(answer),
        _fetching(answer),
        "",
    )
    rows = [
        [_gib(one.gib), share(one.hit_ratio), seconds(one.saved_s) if one.saved_s else "0 s"]
        for one in answer.sizes
    ]
    show(table("", [">tier", ">hit ratio", ">saved a request"], rows))
    for note in answer.notes:
        show(Text(f"note: {note}", style="dim"))


def _gib(gib: float) -> str:
    return quantity_bytes(gib * GIB) if gib >= 10 else f"{gib:.2g} GiB"


def _target(answer: CacheAnswer) -> str:
    if answer.target_gib is None:
        return f"no tier reaches {share(answer.target)}: the rest of the tokens never come again"
    return f"a hit ratio of {share(answer.target)} takes {_gib(answer.target_gib)}"


def _fetching(answer: CacheAnswer) -> str:
    even = rate_bytes(answer.break_even_gb_per_s * 1e9)
    got = rate_bytes(answer.fetch_gb_per_s * 1e9)
    if not answer.fetch_pays:
        return f"fetching is slower than computing: a fetch gets {got}, and {even} break even"
    text = f"a fetch gets {got}; below {even} computing is sooner"
    if answer.qps_break_even is None:
        return text
    load = answer.qps_break_even
    words = f"{load:,.0f}" if load >= 100 else f"{load:.3g}"
    return f"{text}, which a load of {words} requests a second brings about"
