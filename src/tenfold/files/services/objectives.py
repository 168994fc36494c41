"""What is wrong with the objectives of a service, live or simulated: that nothing can meet them."""

from collections.abc import Iterator

from tenfold.model.fleet.finding import Finding
from tenfold.model.service.simulated import SimulatedService
from tenfold.model.service.spec import ServiceSpec

TPOT, LATENCY, TTFT = "tpot_objective_s", "latency_objective_s", "ttft_objective_s"
BUSY, ALONE = "decode_tokens_per_s", "decode_tokens_per_s_alone"


def objective_faults(service: ServiceSpec | SimulatedService) -> Iterator[Finding]:
    """Yield what contradicts itself in objectives and rates."""
    ttft_s, latency_s = service.ttft_objective_s, service.latency_objective_s
    if ttft_s is not None and latency_s is not None and latency_s < ttft_s:
        message = f"`{LATENCY}` is {latency_s:g}, below `{TTFT}` of {ttft_s:g}"
        hint = "the last token cannot come before the first: raise it, or lower the other"
        yield Finding(code="wrong-value", message=message, hint=hint, path=(LATENCY,))
    yield from _token_faults(service)


def _token_faults(service: ServiceSpec | SimulatedService) -> Iterator[Finding]:
    busy, alone = service.decode_tokens_per_s, service.decode_tokens_per_s_alone
    tpot_s = service.tpot_objective_s
    if alone is not None:
        if tpot_s is None or busy is None or service.slots is None:
            absent = TPOT if tpot_s is None else BUSY if busy is None else "slots"
            yield Finding(
                code="missing-key",
                message=f"`{ALONE}` is given, but `{absent}` is missing",
                hint=f"with `{TPOT}`, `slots` and `{BUSY}` it limits the slots that are used; "
                "add what is missing, or remove it",
                path=(ALONE,),
            )
        if busy is not None and alone < busy:
            yield Finding(
                code="wrong-value",
                message=f"`{ALONE}` is {alone:g}, below `{BUSY}` of {busy:g}",
                hint="a request alone is not slower than one among others: swap the two",
                path=(ALONE,),
            )
    fastest = alone or busy
    if tpot_s is not None and fastest is not None and tpot_s * fastest < 1 - 1e-9:
        key = BUSY if alone is None else ALONE
        more = f", or give `{ALONE}` if a less busy replica is faster" if alone is None else ""
        yield Finding(
            code="wrong-value",
            message=f"`{TPOT}` is {tpot_s:g}, but a token takes {1 / fastest:.3g} s at the "
            f"`{key}` of {fastest:g}: no number of replicas meets it",
            hint=f"raise it{more}",
            path=(TPOT,),
        )
