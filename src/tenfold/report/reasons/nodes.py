"""Why a node takes no work, and how it did in its acceptance test."""

from tenfold.report.reasons.template import Template

BASIS = {"itself": "its own earlier figures", "pool": "its pool"}

NODES = {
    "by-hand": Template("{note:text}", plain="cordoned by an operator"),
    "keeps-failing-jobs": Template(
        "jobs keep failing on {node:node} and not on others of its pool: {causes:causes}"
        "[; {more?} earlier]",
        plain="jobs keep failing there and not on others of its pool",
    ),
    "under-test": Template(
        "acceptance test running[ {again:word}]", again={"yes": "again; takes no work meanwhile"}
    ),
    "accepted": Template(
        "[matches {basis:word}[ ({peers:#node})]|first of its pool to be measured]",
        basis=BASIS,
        plain="passed its acceptance test",
    ),
    "acceptance-refused": Template(
        "slower than {basis:word}[ ({peers:#node})]: {causes:causes}",
        basis=BASIS,
        plain="slower than its pool",
    ),
    "acceptance-failed": Template(
        "the acceptance test did not finish[: {cause:causes}|: no figures]",
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
        garbled={"yes": "its output cannot be read"},
        plain="not measured",
    ),
    "gpus-not-measured": Template("GPUs are not tested yet, only the rest of the machine"),
    "node-under-test": Template("{node:node} is being tested"),
    "node-refused": Template("{node:node} failed its acceptance test: {cause:causes}"),
    "node-not-refused": Template("{node:node} did not fail an acceptance test"),
    "no-such-node": Template("no such node: {nodes:nodes}"),
    "no-acceptance-test": Template("this control plane runs no acceptance tests"),
    "node-busy": Template("{node:node} runs jobs; a test now would measure them too"),
}
