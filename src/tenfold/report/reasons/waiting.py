"""Why a job waits, or can never start."""

from tenfold.report.reasons.template import Template

NEEDS = "needs [{gpus?:#GPU} on ]{nodes:#node}"
HAD = (
    "{with_room} of {alike:#node} with room[ ({away?} unavailable)][ ({in_window?} in a window)]"
    "[; {ahead?:#job} ahead]"
)
QUOTA = "asks for {asked:amount}; {team:team} holds {held:amount} against a quota of {quota:amount}"
IN_ONE = {"required": "in one", "balanced": "split evenly by", "spread": "spread by"}

WAITING = {
    "starts-now": Template("starts in the next cycle"),
    "too-few-free": Template(
        f"{NEEDS}[ {{how:word}} {{within:level}}]; {{free:#GPU}} free, {HAD}",
        plain="not enough free GPUs",
        how=IN_ONE,
    ),
    "room-scattered": Template(
        f"{NEEDS}[ {{how:word}} {{within:level}}]; {{free:#GPU}} free, but spread thin: {HAD}",
        plain="enough GPUs are free, but spread over too many nodes",
        how=IN_ONE,
        shown="fragmented",
    ),
    "wrong-domain": Template(
        f"{NEEDS} {{how:word}} {{within:level}}"
        "[; the best, {domain:name}, has room on {domain_with_room} of {domain_nodes:#node}"
        "|; {with_room} of {alike:#node} with room, but not placed like that]"
        "[; {ahead?:#job} ahead]",
        plain="nodes with room are in the wrong domain",
        how=IN_ONE,
    ),
    "rack-power": Template(
        f"{NEEDS}[ {{how:word}} {{within:level}}]; rack power does not allow it: {HAD}",
        plain="racks are at their power limit",
        how=IN_ONE,
    ),
    "cpus-or-memory-short": Template(
        f"{NEEDS} with its CPUs and memory; {HAD}", plain="not enough free CPUs or memory"
    ),
    "others-first": Template(
        "there is room, but other jobs are ahead"
        "[: {with_room} of {alike:#node} with room][ ({away?} unavailable)]"
        "[; {ahead?:#job} ahead][; {freeing:word}]",
        freeing={"yes": "capacity is being freed for them"},
        shown="jobs-ahead",
    ),
    "held-back": Template(
        "there is room, but the policy does not start it"
        "[: {with_room} of {alike:#node} with room][ ({away?} unavailable)][; {ahead?:#job} ahead]",
        shown="held-by-policy",
    ),
    "kept-for-a-promise": Template(
        f"[{NEEDS}; {{kept:#node}} reserved for {{job:job}}[ and {{more?}} more]"
        "|there is room, but it is reserved for other jobs]",
        plain="nodes are reserved for other jobs",
        shown="nodes-reserved",
    ),
    "promised": Template(
        "[{nodes:#node} reserved for it; {busy} still in use"
        "|to start within {in_ms:ms} on {on:nodes}]",
        plain="nodes are reserved for it",
        shown="start-reserved",
    ),
    "window": Template(
        f"{NEEDS}"
        "[ for up to {limit_ms:ms}]; window {window:name} "
        "[has [{node:node}|{closed:#node}][ for {team:team}] for another {left_ms:ms}"
        "|takes [{node:node}|{closed:#node}] in {in_ms:ms} and ends in {until_ms:ms}]",
        plain="a maintenance or team window holds the nodes",
    ),
    "dependency": Template("waits for {job:job} to complete"),
    "after-others": Template(
        "waits for {job:job} to complete[ and {more?} more]", shown="dependencies"
    ),
    "off-peak": Template("starts only off-peak[, which begins in {in_ms:ms}]"),
    "array-full": Template("array limit reached: {most} members of {array:job} at once"),
    "quota-exceeded": Template(f"{QUOTA} and may not borrow", plain="over the team's quota"),
    "borrow-limit": Template(
        f"{QUOTA}[ and may borrow {{borrow:amount}}]", plain="over what the team may borrow"
    ),
    "parent-limit": Template(
        f"{QUOTA}[ and may borrow {{borrow:amount}}]", plain="over the parent team's limit"
    ),
    "not-lent": Template(
        "asks for {asked:amount}; teams hold {held:amount} of {all:amount}"
        "[, and {kept:amount} of idle quota is not lent]",
        plain="idle quota of other teams is not lent",
    ),
    "quota-hours": Template(
        "{limit:causes}; [quota rises to {quota:amount}|quotas change] in {in_ms:ms}",
        plain="over the quota of this hour",
    ),
}

NEVER = {
    "never-fits": Template("no set of identical nodes could hold shape {shape:name}, even empty"),
    "no-such-accelerator": Template("no node has {accelerators:names}"),
    "no-node-with-tags": Template(
        "none of {of:#node} large enough has the tags[ {tags:names}][ without {avoided:names}]"
    ),
    "too-few-with-tags": Template(
        "needs {nodes:#node} tagged[ {tags:names}][ without {avoided:names}]; "
        "{tagged} of {of} are[, at most {alike} of them identical]"
    ),
    "larger-than-a-domain": Template(
        "needs {nodes:#node} {how:word} {within:level}; the largest has {largest}", how=IN_ONE
    ),
    "more-than-racks-feed": Template(
        "needs {nodes:#node} with {per_node:#GPU} each; rack power allows {fed} of {of}"
        "[ in the best {within?:level}], even with everything idle",
        shown="rack-power-insufficient",
    ),
    "larger-than-the-fleet": Template(
        "needs {nodes:#node}; the largest set of identical nodes has {alike}"
    ),
    "larger-than-a-node": Template(
        "[needs {per_node:#GPU} per node; the largest suitable node has {largest}"
        "|no node can hold a member of shape {shape:name}]",
        plain="larger than any node",
    ),
    "larger-than-the-partition": Template(
        "partition {partition:name} has too few nodes for shape {shape:name}"
    ),
    "above-limit": Template(
        "asks for {asked:amount}; [{team:team} is|all teams together are] limited to {most:amount}",
        plain="asks for more than its team may ever hold",
    ),
    "never-between-windows": Template(
        "cannot be stopped and runs up to {limit_ms:ms}; windows leave less time on "
        "{closed:#node}, and the others cannot hold it"
    ),
    "dependency-failed": Template(
        "depends on {job:job}, which ended {status:word}", plain="a job it depends on failed"
    ),
}
