"""Why a running job is stopped or resized."""

from tenfold.report.reasons.template import Template

STOPS = {
    "gave-way": Template(
        "preempted under policy {policy:name}[ for {job:job}| for shorter jobs]",
        plain="preempted for another job",
        shown="preempted-by-policy",
    ),
    "outranked": Template(
        "preempted for {job:job} of the same team, which has a higher priority",
        plain="preempted for a job of the same team with a higher priority",
    ),
    "reclaimed": Template(
        "preempted: {borrower:team} was borrowing, and {job:job} of {team:team} is within its "
        "quota",
        plain="preempted: borrowed GPUs were reclaimed",
    ),
    "promise-due": Template(
        "preempted: its nodes are reserved for {job:job}",
        plain="preempted: its nodes were reserved for another job",
        shown="reservation-due",
    ),
    "defragmented": Template(
        "moved to other nodes to free whole nodes for {job:job}",
        plain="moved to other nodes to free whole nodes",
    ),
    "idle": Template("idle for {idle_ms:ms}", plain="held GPUs without using them"),
    "window-open": Template("{node:node} is reserved by a window", plain="a window opened"),
    "grown": Template("grown: no other job needs these GPUs"),
    "shrunk": Template("shrunk: a pending job needs [{accelerator?:word} ]GPUs"),
    "advised": Template("stopped so that another job can start"),
}
