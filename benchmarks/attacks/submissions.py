"""One request that stops the loop, and small requests that become a large journal."""

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.attacks.target import MIB, Finding, Target, Tree, answered, wait

NUL = {"command": ["true"], "checkpoint": {"dir": "a\0b"}}
SETTLES_S = 6.0
PER_BODY, PER_MEMBER = 6, 1_000
"""Bytes of journal for each byte of an accepted body and for each of its jobs, over their lives."""
SPARE_MIB = 0.5
"""Journal that is due to what the control plane writes by itself."""
RSS_MIB = 100.0


def stopped_loop(tree: Tree) -> Iterator[Finding]:
    """A NUL in a path must not end the loop, neither now nor after a restart."""
    with Target(tree) as target:
        before = target.readyz().status
        told = target.submit(NUL)
        # The loop handles what was accepted; a failure shows within seconds, or not at all.
        wait(lambda: target.readyz().status != 200, SETTLES_S)
        after = target.readyz().status
        started = target.restart()
        wait(lambda: target.readyz().status == 200, SETTLES_S)
        again = target.readyz().status
        made = target.submit({"command": ["true"]}, team="blue")
        state = f"{made.status}"
        if made.status == 201:
            state += f" {target.end_of(made.json()['id'], 'blue')}"
        came = (
            f"{answered(told)}; readyz {before}, then {after}, after a restart {again}"
            f"{'' if started else ' (did not start)'}; next job of blue {state}"
        )
        held = (before, after, again, state) == (200, 200, 200, "201 succeeded")
        yield Finding(
            "NUL in `checkpoint.dir`", came, held, "readyz 200 throughout; blue's job succeeds"
        )


NEEDS = [f"{number:0180}" for number in range(2_500)]
AMPLIFIED: dict[str, dict[str, Any]] = {
    "60 tags x 2,000 members": {
        "array": 2_000,
        "needs": [f"{number:02}" + "x" * 178 for number in range(60)],
    },
    "2,500 needs x 250": {"array": 250, "needs": NEEDS},
    "2,500 needs x 1,500": {"array": 1_500, "needs": NEEDS},
}


def amplification(tree: Tree) -> Iterator[Finding]:
    """A body of kilobytes becomes neither a journal nor memory of megabytes."""
    for name, more in AMPLIFIED.items():
        body = {"command": ["true"], **more}
        sent, members = len(json.dumps(body)), more["array"]
        with Target(tree) as target:
            target.token("member", "blue")
            target.token()
            rss, journal = target.rss_mib(), target.settled_journal_mib()
            told = target.submit(body)
            if told.code() == "no-node-with-tags":
                # Newer versions refuse what can never start, unless they are asked not to.
                told = target.submit({**body, "allow_pending": True})
            grown = target.settled_journal_mib() - journal
            memory = target.peak_mib() - rss
            other = target.submit({"command": ["true"]}, team="blue").status
            allowed = SPARE_MIB
            if told.status == 201:
                allowed += (PER_BODY * sent + PER_MEMBER * members) / MIB
            ended = f"; {target.stopped}" if target.stopped else ""
            yield Finding(
                f"{name}: {sent:,} B",
                f"{answered(told)}; journal +{grown:,.1f} MiB,"
                f" RSS {rss:,.0f} MiB +{memory:,.0f}; blue {other}{ended}",
                grown <= allowed and memory <= RSS_MIB and other == 201,
                f"journal +{allowed:.1f} MiB, RSS +{RSS_MIB:.0f} MiB, blue 201",
            )
