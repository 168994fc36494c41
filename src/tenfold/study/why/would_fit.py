"""What to say about a submission that can never start: the key that is wrong, and what would fit.

Every size in a hint was tried on the idle fleet, so a request that follows it is not refused again.
"""

from collections.abc import Collection
from difflib import get_close_matches

from msgspec.structs import replace

from tenfold.decide.place.capacity_gate import MAY_CHANGE
from tenfold.fleet.capacity import FreeNodeIndex
from tenfold.model.fleet.finding import Finding
from tenfold.model.job.job import WHOLE, Shape, per_member
from tenfold.model.job.submission import Submission
from tenfold.model.reason import Reason
from tenfold.model.units import MINUTE, Millis
from tenfold.report.reasons.registry import shown_code
from tenfold.report.reasons.render import Reader, render
from tenfold.study.why.never import FleetCheck, most_that, sized

NAMES_MAX = 8
"""Accelerators or tags listed in a hint."""
_OPT_OUT = "or set `allow_pending = true` to keep the job pending until such nodes join"
_Kind = tuple[int, int, int, FreeNodeIndex]
"""GPUs, milli-CPUs and MiB of a kind of node, and its nodes."""


def refusal_findings(
    check: FleetCheck,
    submission: Submission,
    reasons: Collection[Reason],
    given: Collection[str],
    reader: Reader,
) -> list[Finding]:
    """Return a finding for each reason why a submission can never start.

    `given` are the keys that were set: a finding names one of them where it can.
    """
    found = [_finding(check, submission, reason, given, reader) for reason in reasons]
    if submission.terms is not None and submission.terms.kind == "service":
        # A service file has no `allow_pending`.
        return found
    return [_with_opt_out(one, reason) for one, reason in zip(found, reasons, strict=True)]


def not_divisible(check: FleetCheck, shape: Shape, given: Collection[str]) -> Finding:
    """Return the finding for `gpus` that no whole number of whole nodes provides."""
    sizes = sorted({kind[0] for kind in _kinds(check, shape)}, reverse=True)
    nodes = " or ".join(f"{size:,}" for size in sizes[:3])
    most = sizes[0]
    got = -(-shape.gpus // most) * most
    message = (
        f"`gpus` is {shape.gpus:,}, not a multiple of the {nodes} GPUs per node: "
        f"the job would occupy {got:,}"
    )
    below = shape.gpus // most * most
    whole = [n for n in (below, got) if n and check.fits(sized(shape, n, None))]
    options = [f"`gpus = {n}`" for n in whole]
    options += [_split_text(one) for one in check.even_splits(shape)][:1]
    return Finding(
        code="gpus-not-divisible", message=message, hint=_use(options), path=(_key("gpus", given),)
    )


def _finding(
    check: FleetCheck,
    submission: Submission,
    reason: Reason,
    given: Collection[str],
    reader: Reader,
) -> Finding:
    shape = check.job_of(submission).shape
    message = render(reason, reader, submission.team)
    key, hint = _key("nodes", given), _smaller(check, shape)
    match reason.code:
        case "no-such-accelerator":
            key, hint = "accelerator", _other_accelerators(check, shape)
        case "no-node-with-tags" | "too-few-with-tags":
            key, hint = _tags(check, submission, shape)
        case "larger-than-a-domain":
            key = "within"
            hint = f'{hint or "use fewer nodes"}, or `how = "preferred"`'
        case "larger-than-a-node":
            key, message, hint = _too_large(check, shape, given)
        case "above-limit":
            key = _key("gpus", given)
            hint = "request less, or ask an operator to raise the limit in the policy"
        case "never-between-windows":
            key, hint = "time_limit", _shorter(check, submission)
        case _:
            pass
    return Finding(
        code=shown_code(reason.code),
        message=message,
        hint=hint or "see `tenfold fleet show` for the nodes of this fleet",
        path=(key,),
    )


def _with_opt_out(one: Finding, reason: Reason) -> Finding:
    if reason.code not in MAY_CHANGE or one.hint.endswith("?"):
        return one
    opt_out = _OPT_OUT
    if reason.code == "never-between-windows":
        opt_out = opt_out.replace("such nodes", "nodes without these windows")
    return replace(one, hint=f"{one.hint}; {opt_out}")


def _too_large(check: FleetCheck, shape: Shape, given: Collection[str]) -> tuple[str, str, str]:
    """Return the key, message and hint for a job of which no node holds a member."""
    kinds = _kinds(check, shape)
    of = f" of type {_names(shape.accelerators)}" if shape.accelerators else ""
    each = shape.gpus_per_node or min(shape.gpus, 1) or int(shape.milli > 0)
    most = max((kind[0] for kind in kinds), default=0)
    if each > most:
        message = (
            f"needs {each:,} GPUs on one node; the largest node{of} has {most:,}"
            if most
            else f"needs a GPU; no node{of} has one"
        )
        return _key("gpus_per_node", given), message, _smaller(check, shape) if most else ""
    members = -(-shape.gpus // (shape.gpus_per_node or max(most, 1))) or 1
    cpus, memory = per_member(shape, members)
    kinds = [kind for kind in kinds if kind[0] >= each]
    with_gpus = f" with {each:,} GPUs" if each > 1 else ""
    cpus_most = max((kind[1] or cpus for kind in kinds), default=0)
    if cpus > cpus_most:
        message = (
            f"needs {cpus / WHOLE:,g} CPUs on one node; the largest node{of}{with_gpus} "
            f"has {cpus_most / WHOLE:,g}"
        )
        return "cpus_per_node", message, f"use `cpus_per_node = {cpus_most / WHOLE:g}` or less"
    memory_most = max(kind[2] or memory for kind in kinds if not kind[1] or kind[1] >= cpus)
    if memory > memory_most:
        beside = f"{with_gpus} and {cpus / WHOLE:,g} CPUs" if with_gpus else ""
        message = (
            f"needs {memory / 1_024:,g} GiB on one node; the largest node{of}{beside} "
            f"has {memory_most / 1_024:,g} GiB"
        )
        hint = f"use `memory_gib_per_node = {memory_most / 1_024:g}` or less"
        return "memory_gib_per_node", message, hint
    message = f"no node{of} has the GPUs, CPUs and memory that one node of the job needs"
    return _key("gpus_per_node", given), message, "request less per node"


def _smaller(check: FleetCheck, shape: Shape) -> str:
    """Return sizes that fit: as many GPUs in all on other nodes, or the largest that do."""
    if shape.gpus == 0:
        return ""
    options = [_split_text(one) for one in check.even_splits(shape)][:1]
    each = shape.gpus_per_node
    whole = sized(shape, shape.gpus, None)
    if options and each and not shape.memory_mib and check.exact_split(whole) == whole:
        options.append(f"`gpus = {shape.gpus}` for the whole job")
    if not options and each:
        sizes = [kind[0] for kind in _kinds(check, shape)]
        each = min(each, max(sizes, default=1)) or 1
        wanted = -(-shape.gpus // each)
        nodes = most_that(lambda n: check.fits(sized(shape, n * each, each)), wanted)
        if nodes:
            options.append(_split_text(sized(shape, nodes * each, each)) + " or fewer")
    elif not options:
        sizes = [kind[0] for kind in _kinds(check, shape) if kind[0]]
        most = max(
            (
                size * most_that(lambda n, s=size: check.fits(sized(shape, n * s, s)), 1 << 20)
                for size in dict.fromkeys(sizes)
            ),
            default=0,
        )
        options += [f"`gpus = {most}` or less"] if most else []
    return _use(options)


def _shorter(check: FleetCheck, submission: Submission) -> str:
    """Return the longest time limit that fits between windows."""

    def fits(minutes: int) -> bool:
        return not check.never(replace(submission, limit_ms=Millis(minutes * MINUTE)))

    most = most_that(fits, (submission.limit_ms or 0) // MINUTE)
    limit = f"{most}m" if most % 60 else f"{most // 60}h"
    longest = f'use `time_limit = "{limit}"` or less, or ' if most else ""
    return f"{longest}set `preemptible = true`"


def _tags(check: FleetCheck, submission: Submission, shape: Shape) -> tuple[str, str]:
    """Return the key and hint for tags that too few nodes have."""
    own = submission.shape.where
    where = shape.where
    assert where is not None, "only shapes with tag constraints fail on tags"
    extra = [tag for tag in where.needs if own is None or tag not in own.needs]
    if extra:
        return "team", f"team `{submission.team}` may only use nodes tagged {_names(extra)}"
    tags = dict.fromkeys(tag for node in check.fleet.nodes.values() for tag in node.tags)
    missing = [tag for tag in where.needs if tag not in tags]
    near = get_close_matches(missing[0], list(tags), n=1, cutoff=0.6) if missing else []
    if near:
        return "needs", f"did you mean `{near[0]}`?"
    key = "needs" if where.needs else "avoids"
    fewer = _smaller(check, shape)
    if fewer:
        return key, fewer
    listed = f"tags in this fleet: {_names(tags)}" if tags else "the nodes of this fleet have none"
    return key, listed if where.needs else f"avoid fewer tags; {listed}"


def _other_accelerators(check: FleetCheck, shape: Shape) -> str:
    known = list(
        dict.fromkeys(node.accelerator for node in check.fleet.nodes.values() if node.accelerator)
    )
    wanted = shape.accelerators[0]
    near = [name for name in known if wanted.lower() in name.lower()]
    near = near or get_close_matches(wanted, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {_names(near, ' or ')}?"
    return f"accelerators in this fleet: {_names(known)}" if known else "no node has a GPU"


def _kinds(check: FleetCheck, shape: Shape) -> list[_Kind]:
    """Return the kinds of nodes with the type and tags that a shape needs."""
    where = shape.where
    return [
        (size, cpus, memory, index)
        for (_, accelerator, size, cpus, memory), index in check.capacity.node_indexes.items()
        if (not shape.accelerators or accelerator in shape.accelerators)
        and (
            where is None
            or (
                all(tag in index.tags for tag in where.needs)
                and not any(tag in index.tags for tag in where.avoids)
            )
        )
    ]


def _split_text(shape: Shape) -> str:
    each = shape.gpus_per_node or shape.gpus
    return f"`nodes = {shape.gpus // each}` with `gpus_per_node = {each}`"


def _key(wanted: str, given: Collection[str]) -> str:
    """Return the key to name: the one that is meant, or another size key that was set."""
    keys = (wanted, "gpus_per_node", "nodes", "gpus")
    return next((key for key in keys if key in given), wanted)


def _use(options: Collection[str]) -> str:
    return "use " + ", or ".join(options) if options else ""


def _names(names: Collection[str], joined: str = ", ") -> str:
    listed = [f"`{name}`" for name in list(names)[:NAMES_MAX]]
    more = len(names) - len(listed)
    return joined.join(listed) + (f" and {more} more" if more > 0 else "")
