"""Acceptance tests on the command line: wait for one, and show each figure next to its pool's."""

from collections.abc import Mapping, Sequence
from time import monotonic, sleep

from tenfold.cli.job.live_render import BY_HAND
from tenfold.cli.output import show, table
from tenfold.client.client import Client
from tenfold.model.api.nodes import Node, NodeFigure
from tenfold.model.errors import NoAnswer

POLL_S = 0.25
WAIT_S = 180.0
"""A test takes about two seconds, and is aborted after sixty."""


def tested_at(client: Client) -> dict[str, str]:
    """Return the last test time of each node; empty if it was never tested."""
    return {node.id: node.test.tested_at if node.test else "" for node in client.nodes()}


def wait_for_tests(client: Client, names: Sequence[str], before: Mapping[str, str]) -> list[Node]:
    """Return nodes once each was tested again."""
    ends = monotonic() + WAIT_S * len(names)
    while True:
        nodes = {node.id: node for node in client.nodes()}
        found = [nodes[name] for name in names if name in nodes]
        left = [
            node.id
            for node in found
            if node.test is None or node.test.tested_at == before.get(node.id, "")
        ]
        if not left:
            return found
        if monotonic() > ends:
            raise NoAnswer(
                "test-not-over",
                f"the test of node `{left[0]}` has not finished after {WAIT_S * len(names):.0f} s",
                "it continues; `tenfold node list` shows the result",
            )
        sleep(POLL_S)


VERDICTS = {"first": "baseline", "alike": "ok"}
"""What the verdicts on figures are called on screen, where their codes do not say it."""


def show_test(node: Node) -> None:
    """Print the test result of a node, one row per figure."""
    test = node.test
    if test is None:
        show(f"`{node.id}` was never tested")
        return
    by = f" by {test.accepted_by}" if test.accepted_by else ""
    outcome = "rejected" if test.outcome == "refused" else test.outcome
    show(f"`{node.id}`: {outcome}{by}; {test.sentence} [{test.code}]")
    rows = [_row(one) for one in test.figures]
    if rows:
        columns = ["figure", ">measured", ">median", ">deviation", ">allowed", "unit", "verdict"]
        show("", table("", columns, rows), "")
    for note in (*test.notes, *test.unmeasured):
        show(f"note: {note}")


def show_refused(nodes: Sequence[Node]) -> None:
    """Print why nodes are out of service."""
    for node in nodes:
        if node.state != "up" and node.sentence and node.cause != BY_HAND:
            show(f"`{node.id}` is {node.state}: {node.sentence}")


def _row(one: NodeFigure) -> list[str]:
    return [
        one.name,
        "" if one.value is None else f"{one.value:,.4g}",
        "" if one.median is None else f"{one.median:,.4g}",
        "" if one.deviation is None else f"{one.deviation:+.0%}",
        "" if one.allowed is None else f"-{one.allowed:.0%}",
        one.unit,
        VERDICTS.get(one.judged, one.judged),
    ]
