"""Why a job is pending, or can never start."""

from tenfold.report.reasons.template import Template

NEEDS = "needs [{gpus?:#GPU} on ]{nodes:#node}"
ENOUGH = (
    "[{with_room?} of {alike:#eligible node} {with_room:has} enough"
    "|none of {alike:#eligible node} has enough]"
)
HAD = f"{ENOUGH}[ ({{away?}} unavailable)][ ({{in_window?}} in a window)][; {{ahead?:#job}} ahead]"
QUOTA = "requests {asked:amount}; {team:team} holds {held:number} (quota {quota:number}"
IN_ONE = {"required": "in one", "balanced": "split evenly by", "spread": "spread by"}

WAITING = {
    "starts-now": Template("starts in the next cycle"),
    "too-few-free": Template(
        f"{NEEDS}[ {{how:word}} {{within:level}}]; {{free:#GPU}} free, {HAD}",
        plain="not enough free GPUs",
        how=IN_ONE,
    ),
    "room-scattered": Template(
        f"{NEEDS}[ {{how:word}} {{within:level}}]; {{free:#GPU}} free, but fragmented: {HAD}",
        plain="enough GPUs are free, but fragmented across too many nodes",
        how=IN_ONE,
        shown="fragmented",
    ),
    "tagged-nodes-down": Template(
        f"{NEEDS}[ tagged {{tags:all}}]; all {{alike:#node}} with these tags are unavailable, "
        "and it may not run on others[; {ahead?:#job} ahead]",
        plain="every node with its tags is unavailable",
    ),
    "wrong-domain": Template(
        f"{NEEDS} {{how:word}} {{within:level}}"
        "[; in the best one, {domain:name}, {domain_with_room} of {domain_nodes:#node} "
        "{domain_with_room:has} enough"
        "|; {with_room} of {alike:#eligible node} {with_room:has} enough, but not in that layout]"
        "[; {ahead?:#job} ahead]",
        plain="free nodes are in the wrong domain",
        how=IN_ONE,
    ),
    "rack-power": Template(
        f"{NEEDS}[ {{how:word}} {{within:level}}]; rack power limit reached: {HAD}",
        plain="racks are at their power limit",
        how=IN_ONE,
    ),
    "cpus-or-memory-short": Template(
        f"{NEEDS} with its CPUs and memory; {HAD}", plain="not enough free CPUs or memory"
    ),
    "others-first": Template(
        "capacity is free, but other jobs are ahead"
        "[: {with_room} of {alike:#eligible node} {with_room:has} enough][ ({away?} unavailable)]"
        "[; {ahead?:#job} ahead][; {freeing:word}]",
        freeing={"yes": "capacity is being freed for them"},
        shown="jobs-ahead",
    ),
    "held-back": Template(
        "capacity is free, but the policy does not start it yet"
        "[: {with_room} of {alike:#eligible node} {with_room:has} enough][ ({away?} unavailable)]"
        "[; {ahead?:#job} ahead]",
        shown="held-by-policy",
    ),
    "next-pass": Template(
        "capacity is free: waits for the next scheduling pass[ in {in_ms:ms}]",
        shown="next-scheduling-pass",
    ),
    "kept-for-a-promise": Template(
        f"[{NEEDS}; {{kept:#node}} reserved for {{job:job}}[ and {{more?}} more]"
        "|capacity is free, but reserved for other jobs]",
        plain="nodes are reserved for other jobs",
        shown="nodes-reserved",
    ),
    "promised": Template(
        "[{nodes:#node} reserved for it; {busy} still busy"
        "|reserved for it: starts within {in_ms:ms} on {on:nodes}]"
        "[; postponed by {later_ms:ms}"
        "[: {job:job} still runs there[, as do {more?} more][; {guess:word}]"
        "|: {node:node} is down]]",
        plain="nodes are reserved for it",
        guess={"yes": "it has no time limit, so its end is a guess"},
        shown="start-reserved",
    ),
    "reservation-withdrawn": Template("its reservation was withdrawn"),
    "window": Template(
        f"{NEEDS}"
        "[ for up to {limit_ms:ms}]; window {window:name} "
        "[holds [{node:node}|{closed:#node}][ for {team:team}] for another {left_ms:ms}"
        "|starts in {in_ms:ms} on [{node:node}|{closed:#node}] and ends in {until_ms:ms}]",
        plain="a maintenance or team window holds the nodes",
    ),
    "dependency": Template("waiting for {job:job} to end"),
    "after-others": Template(
        "waiting for {job:job}[ and {more?} more] to end", shown="dependencies"
    ),
    "off-peak": Template("starts only in off-peak hours[, which begin in {in_ms:ms}]"),
    "array-full": Template("array limit reached: at most {most} tasks of {array:job} at once"),
    "quota-exceeded": Template(f"{QUOTA}, no borrowing)", plain="over the team's quota"),
    "borrow-limit": Template(
        f"{QUOTA}[, may borrow {{borrow:number}}])", plain="over the team's borrowing limit"
    ),
    "parent-limit": Template(
        f"{QUOTA}[, may borrow {{borrow:number}}])", plain="over the parent team's limit"
    ),
    "not-lent": Template(
        "requests {asked:amount}; teams hold {held:number} of {all:number}"
        "[, and {kept:number} of idle quota is not lent out]",
        plain="other teams do not lend their idle quota",
    ),
    "quarantined": Template(
        "held after an internal error of the control plane ({error:word}[: {said:text}]); "
        "an operator can release it once the cause is fixed",
        plain="held after an internal error of the control plane",
    ),
    "quota-hours": Template(
        "{limit:causes}; [quota rises to {quota:amount}|quotas change] in {in_ms:ms}",
        plain="over the quota for this hour",
    ),
}

PROTECTED = "{jobs:#running job} ({gpus:#GPU}) from preemption"
RULES = {
    "minimum-run": Template(f"`min_run_min` protects {PROTECTED} for another {{in_ms:ms}}"),
    "not-preemptible": Template(f"`preemptible = false` protects {PROTECTED}"),
    "preempted-enough": Template(
        f"`stops_per_job` protects {PROTECTED}: each was preempted at least {{most:#time}}"
    ),
    "no-preemption": Template(
        f"`preempts = false`: the policy protects {PROTECTED}, even from jobs within quota"
    ),
    "preemption-delay": Template(
        "`delay_min`: the job has not waited long enough to preempt others; it may in {in_ms:ms}"
    ),
    "hourly-preemptions": Template(
        "`stops_per_hour`: the policy preempts at most {most:#job} an hour; "
        "the next one in {in_ms:ms}"
    ),
    "above-quota": Template(
        "{team:team} is above its quota with this job, so the job cannot preempt others"
    ),
    "reserved-start": Template(
        "{nodes:#node} reserved for {job:job}, which starts within {in_ms:ms}"
    ),
    "starts-by-preempting": Template(
        "starts by preempting {job:job}[ and {more?} more][ in {in_ms:ms}]",
        plain="starts by preempting other jobs",
    ),
    "smaller-first": Template(
        "policy {policy:name} makes no reservations for large jobs: smaller jobs can start first, "
        "even if submitted later[ ({smaller?:#smaller job} pending)];"
        " `tenfold up --policy governed` or `--policy slurm` makes them",
        plain="the policy makes no reservations for large jobs: smaller jobs can start first, "
        "even if submitted later",
    ),
    "time-limits": Template(
        "running jobs free enough GPUs within {in_ms:ms}, when they reach their time limits"
    ),
}
"""Rules that prevent a pending job from starting."""

NEVER = {
    "never-fits": Template("no set of identical nodes is large enough, even when idle"),
    "no-such-accelerator": Template(
        "no node has {accelerators:names}[ or {accelerators_more:,} more]"
    ),
    "no-node-with-tags": Template(
        "of the {of:#node} large enough, none is[ tagged {tags:listed} and "
        "{tags_more:,} more| tagged {tags:all}]"
        "[ without {avoided:names}[ or {avoided_more:,} more]]"
    ),
    "too-few-with-tags": Template(
        "needs {nodes:#node}[ tagged {tags:listed} and {tags_more:,} more| tagged {tags:all}]"
        "[ without {avoided:names}[ or {avoided_more:,} more]]; "
        "{tagged} of {of} are suitable[, at most {alike} of them identical]"
    ),
    "larger-than-a-domain": Template(
        "needs {nodes:#node} {how:word} {within:level}; the largest has {largest}", how=IN_ONE
    ),
    "more-than-racks-feed": Template(
        "needs {nodes:#node} with {per_node:#GPU} each; rack power allows {fed} of {of}"
        "[ in the best {within?:level}], even on an idle fleet",
        shown="rack-power-insufficient",
    ),
    "larger-than-the-fleet": Template(
        "needs {nodes:#node}; the largest set of identical nodes has {alike}"
    ),
    "larger-than-a-node": Template(
        "[needs {per_node:#GPU} per node; the largest suitable node has {largest}"
        "|no node is large enough for one of its processes]",
        plain="larger than any node",
    ),
    "larger-than-the-partition": Template("partition {partition:name} has too few nodes"),
    "above-limit": Template(
        "requests {asked:amount}; [{team:team} is|all teams together are] limited to {most:amount}",
        plain="requests more than its team may ever hold",
    ),
    "never-between-windows": Template(
        "cannot be preempted and may run for {limit_ms:ms}; maintenance or reservation "
        "windows leave less time on {closed:#node}, and no other node fits"
    ),
    "dependency-failed": Template(
        "depends on {job:job}, which {status:word}",
        plain="a job it depends on failed",
        status={
            "cancelled": "was cancelled",
            "refused": "was rejected",
            "timeout": "reached its time limit",
        },
    ),
}
