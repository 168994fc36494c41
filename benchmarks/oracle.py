"""The governed decider against oracles that try everything, on worlds small enough for that.

How many GPUs one walk starts of the most that could start at once, under the same quotas;
and what its evictions cost, against the cheapest that would do and against a scheduler that
takes everybody out and schedules anew.
"""

from statistics import mean

from benchmarks.verdict import Verdict
from tests.rigs.governed.gaps import stops_cost, walk_gap

WORLDS = 2_000


def run(thresholds: dict[str, float]) -> list[Verdict]:
    gaps = [found for seed in range(WORLDS) if (found := walk_gap(seed)) is not None]
    free, own = [one.of_any for one in gaps], [one.of_its_own for one in gaps]
    print(
        f"{len(gaps)} worlds: one walk leaves {mean(free):.1%} of the GPUs that could start if "
        f"order did not count, {max(free):.0%} at worst, none in "
        f"{sum(not one for one in free) / len(free):.0%}; with those started whose turn it was, "
        f"better places would start {mean(own):.1%} more, {max(own):.0%} at worst"
    )
    stops = [found for seed in range(WORLDS) if (found := stops_cost(seed)) is not None]
    dearer = [one for one in stops if one.ours > one.least]
    beyond = [one for one in stops if one.ours > one.anew]
    over = sum(one.ours for one in stops) / sum(one.least for one in stops) - 1
    anew = sum(one.anew for one in stops) / sum(one.least for one in stops) - 1
    worst = max((one.ours / one.least for one in stops if one.least), default=1.0)
    print(
        f"{len(stops)} reclaims: dearer than the least in {len(dearer) / len(stops):.1%}, "
        f"{over:.1%} more in all, {worst:.2f} times at worst; taking everybody out and "
        f"starting over costs {anew:.1%} more than the least; dearer than that in "
        f"{len(beyond) / len(stops):.1%}"
    )
    return [
        Verdict("GPUs left idle by one walk, mean", mean(free), thresholds["gap_mean"]),
        Verdict("the same for want of better places", mean(own), thresholds["places_mean"]),
        Verdict("evictions, cost over the least", over, thresholds["stops_over"]),
        Verdict(
            "evictions dearer than starting over",
            len(beyond) / len(stops),
            thresholds["stops_beyond"],
        ),
    ]
