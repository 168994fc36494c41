"""Nodes that were cordoned because jobs kept failing there, as each reader may see them.

The reason names the jobs, and below `operator` another team's jobs are not there.
"""

from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.fleet.trouble import KEEPS_FAILING
from tenfold.journal.rows import NodeRow
from tenfold.model.api.nodes import NodeOut
from tenfold.server.tokens import Token

PLAINLY = "jobs keep failing there and not on others of its pool"


def nodes_out(fleet: Fleet, token: Token) -> tuple[NodeOut, ...]:
    """Return every node that was taken out for what failed on it."""
    return tuple(
        NodeOut(
            id=node,
            code=cause.code,
            sentence=cause.sentence if token.sees_all_teams else PLAINLY,
        )
        for node, cause in fleet.trouble.blamed.items()
    )


def plain_node(row: NodeRow, token: Token) -> NodeRow:
    """Return a node whose cause names no job to those who may not see it."""
    if token.sees_all_teams or row.cause != KEEPS_FAILING:
        return row
    return replace(row, sentence=PLAINLY)
