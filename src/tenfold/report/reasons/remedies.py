"""Changes that would let a pending job start."""

from tenfold.report.reasons.template import Template

REMEDIES = {
    "remedy": Template(
        "{steps:steps}[; this preempts {stopped?:jobs}][; this also starts {also?:jobs}]"
    ),
    "change-nothing": Template("no change needed: starts in the next cycle"),
    "ask-gpus": Template("request {gpus:#GPU} instead of {before}"),
    "ask-accelerators": Template("request {accelerators:names}"),
    "ask-limit": Template(
        "set its time limit to {limit_ms:ms}, so that it finishes before its nodes are needed"
    ),
    "ask-priority": Template("raise its priority from {before} to {priority}"),
    "ask-domain": Template("allow more than one {within:level} (set `how` to {how:name})"),
    "ask-tags": Template("drop the tags [{tags:listed} and {tags_more:,} more|{tags:all}]"),
    "ask-after": Template("drop the dependency on {jobs:jobs}"),
    "ask-off-peak": Template("allow it to start during peak hours"),
    "ask-array": Template("raise its array limit to {most}"),
    "raise-limit": Template(
        "{what:word} {team:team} by {by:amount}",
        what={
            "quota": "raise the quota of",
            "borrow": "raise the borrowing limit of",
            "lend": "raise the lending limit of",
        },
    ),
    "rent-nodes": Template(
        "rent {nodes:#node} with {gpus} [{accelerator?:word} |]GPUs[ for ${usd:,.2f}/h]"
    ),
    "shrink-job": Template("shrink {job:job} from {before} to {gpus:#GPU}"),
    "move-jobs": Template("move {jobs:jobs} to other nodes"),
    "stop-jobs": Template("stop {jobs:jobs}, which the policy would not preempt"),
}
