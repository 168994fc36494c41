"""Nodes that were cordoned because jobs kept failing there, as each reader may see them."""

from tenfold.fleet.fleet import Fleet
from tenfold.model.api.nodes import NodeOut
from tenfold.report.reasons.render import render
from tenfold.server.auth.tokens import Token


def nodes_out(fleet: Fleet, token: Token) -> tuple[NodeOut, ...]:
    """Return every node that was taken out for what failed on it."""
    return tuple(
        NodeOut(id=node, code=cause.code, sentence=render(cause, token.reader))
        for node, cause in fleet.trouble.blamed.items()
    )
