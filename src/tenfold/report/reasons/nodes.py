"""Why a node accepts no jobs, and the result of its acceptance test."""

from tenfold.report.reasons.template import Template

BASIS = {"itself": "its own earlier results", "pool": "its pool"}

NODES = {
    "by-hand": Template("{note:text}", plain="cordoned by an operator"),
    "leaving": Template("leaves the fleet once its jobs have ended[, as {by:user} asked]"),
    "closed-in-engine": Template("{said:text}", plain="its engine schedules nothing there"),
    "used-by-others": Template(
        "used by jobs that Tenfold did not start: {said:text}",
        plain="used by jobs that Tenfold did not start",
    ),
    "keeps-failing-jobs": Template(
        "jobs keep failing on {node:node} but not on other nodes in its pool: {causes:causes}"
        "[; {more?} earlier]",
        plain="jobs keep failing there but not on other nodes in its pool",
    ),
    "under-test": Template(
        "acceptance test running[ {again:word}]", again={"yes": "again; no jobs until it passes"}
    ),
    "accepted": Template(
        "[matches {basis:word}[ ({peers:#node})]|first node in its pool to be tested]",
        basis=BASIS,
        plain="passed its acceptance test",
    ),
    "acceptance-refused": Template(
        "slower than {basis:word}[ ({peers:#node})]: {causes:causes}",
        basis=BASIS,
        plain="slower than its pool",
    ),
    "acceptance-failed": Template(
        "the acceptance test did not finish[: {cause:causes}|: no results]",
        plain="the acceptance test did not finish",
    ),
    "figure-slow": Template(
        "{figure:word} {value:,.4g} {unit:word}, median {median:,.4g} "
        "({by:.0%} below, {allowed:.0%} allowed)"
    ),
    "figure-fast": Template(
        "{figure:word} {value:,.4g} {unit:word}, far above the median {median:,.4g}"
    ),
    "figure-missing": Template("{figure:word} not measured; median {median:,.4g} {unit:word}"),
    "not-measured": Template(
        "[{cause:causes}|{figure:name} could not be measured: {said:text}|signal {signal}"
        "|exit code {exit_code}|{garbled:word}|not measured while the control plane was down]",
        garbled={"yes": "unreadable output"},
        plain="not measured",
    ),
    "gpus-not-measured": Template("GPUs not tested, only the rest of the node"),
    "node-under-test": Template("{node:node} is being tested"),
    "node-refused": Template("{node:node} failed its acceptance test: {cause:causes}"),
    "node-not-refused": Template("{node:node} has not failed an acceptance test"),
    "no-such-node": Template("no such node: {nodes:nodes}"),
    "no-acceptance-test": Template("this control plane runs no acceptance tests"),
    "node-busy": Template("{node:node} is running jobs, which would distort a test"),
}
