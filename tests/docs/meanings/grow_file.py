"""What each table and key of a grow file means, and what holds where it is left out."""

GROW_TABLES = {
    "limits": "Where each layer counts as broken. The values in the last column are assumptions.",
    "controller": "What admits jobs, and how fast it is set to do so. Of a history under "
    "Slurm, the `slurm.conf` that `--policy` names says it.",
    "service": "A service, what is asked of it today, and what it promises.",
    "dataset": "Bytes that lie on a tier.",
    "monitoring": "What is scraped, how often, and where it is kept.",
    "operations": "Who mends nodes, and what stands in for them meanwhile. How often nodes "
    "fail is said by `--failures`.",
    "facility": "What the building has.",
    "lead_time": "How long a thing takes from order to use. The day to order it by stands "
    "beside a relief of that name.",
    "pace": "How fast demand grows, and from when. The clock is never asked, so the "
    "same file has the same answer tomorrow.",
}

GROW_KEYS = {
    "limits": {
        "wait_s_p90": (
            "the longest wait of nine in ten jobs, and of nine tenths of the GPU time",
            "14,400",
        ),
        "step_efficiency_least": (
            "speed of a GPU in a larger job over that in the job of today",
            "0.8",
        ),
        "stall_share_most": ("share of GPU time that neighbours on shared layers may take", "0.05"),
        "attainment_least": ("share of requests that must meet their promise", "0.99"),
        "kw_most": ("what all sites together may draw", "no limit"),
        "usd_per_month_most": ("what a month may cost", "not known"),
        "headroom_least": ("share of every capacity that is to stay free", "0"),
        "admission_wait_s_most": ("the longest wait for a controller while there is room", "300"),
        "spare_shortfall_share_most": (
            "share of time in which more nodes may be down than spares stand in for",
            "0.01",
        ),
        "fairness_least": ("evenness of what teams get against what they deserve", "0.8"),
        "stranded_share_most": ("share of GPUs that may idle because no waiting job fits", "0.15"),
        "lost_share_most": ("share of time that saves and failures may take from a job", "0.1"),
    },
    "controller": {
        "kind": ("which controller it is", ""),
        "queue": (
            "the queue that these figures are of: a team of the history, or a `queue` of "
            "what was measured",
            "the busiest",
        ),
        "cycles_per_min": ("how often it looks at its queues", "not known"),
        "heads_per_cycle": ("jobs of each queue that are tried in a cycle", "1"),
        "admitted_share": ("share of the jobs tried that are admitted", "all"),
        "cost_ms_per_job": ("what a job takes of the controller's time, measured", "not known"),
    },
    "service": {
        "name": ("the service's name", ""),
        "model": ("a model of the facts", ""),
        "qps": ("requests a second", ""),
        "input_tokens": ("tokens of a prompt", ""),
        "output_tokens": ("tokens of an answer", ""),
        "ttft_s": ("promise: the first token after so long", "no promise"),
        "tpot_s": ("promise: each further token after so long", "no promise"),
        "pool": ("the pool that it runs on", "the largest with GPUs"),
        "replicas_most": ("replicas that it may have", "what the pool holds"),
    },
    "dataset": {
        "name": ("the dataset's name", ""),
        "tier": ("where it lies", ""),
        "tb": ("its size today", ""),
        "grows_with": ("the axis along which it grows; `all`: along any", "`data`"),
        "source_site": ("the site that it is staged from", "the tier's own"),
    },
    "monitoring": {
        "series_per_node": ("time series of a node", "not known"),
        "series_per_gpu": ("time series of a GPU, beside those of its node", "none"),
        "interval_s": ("time between two scrapes", "not known"),
        "samples_per_s_most": ("samples a second that are taken in", "not known"),
        "retention_days": ("how long samples are kept", "not known"),
        "bytes_per_sample": ("what a sample takes on disk", "1.7"),
        "store_tb": ("room for samples", "not known"),
    },
    "operations": {
        "crew": ("people who mend nodes", "not known"),
        "repairs_per_person_day": ("repairs that one of them does in a day", "not known"),
        "nodes_per_person_most": ("nodes that one of them can look after", "no limit"),
        "usd_per_person_month": ("what one of them costs a month", "not known"),
        "spares": ("nodes that stand in for those that are down", "not known"),
        "checkpoint_every_min": (
            "how often jobs save whose history does not say so",
            "60, an assumption",
        ),
    },
    "facility": {
        "floor_racks": ("places for racks, those in use among them", "not known"),
        "ports_free": ("switch ports that are free", "as the fabrics say"),
    },
    "lead_time": {
        "thing": (
            "what is ordered: `nodes`, `site-power`, `rack-power`, `rack`, `switch`, `link`, "
            "`floor` or `storage`",
            "",
        ),
        "weeks_p50": ("half of the orders have come by then", ""),
        "weeks_p90": ("nine of ten have; this one counts", ""),
    },
    "pace": {
        "today": ("the day from which demand grows", ""),
        "doubles_in_months": ("months in which demand doubles", ""),
    },
}

GROW_TAKES = {
    "limits.headroom_least": "a number from 0 to below 1",
    "service.pool": "a pool of the fleet",
    "dataset.tier": "a tier of the fleet",
    "dataset.grows_with": "an axis of `tenfold grow`",
    "dataset.source_site": "a site of the fleet",
    "lead_time.weeks_p90": "a number of at least `weeks_p50`",
    "pace.today": "a day, as 2026-11-15",
}
"""What a key takes, where its type says less than that."""

MEASURED = """\
## The table of what was measured

`tenfold grow --measured` reads a CSV file with a header and a row for each measurement. What was \
measured of a layer stands in place of what its figures say.

```csv
layer,resource,factor,usage,limit,unit,axis
monitoring,prometheus,1,0.1,0.5,cores,nodes
monitoring,prometheus,2,0.2,0.5,cores,nodes
```

| column | meaning | takes | if left out |
|---|---|---|---|
| `layer` | the layer that it belongs to | a text of 1 to 200 characters | **needed** |
| `resource` | what is used | a text of 1 to 200 characters | **needed** |
| `queue` | which of several, where a layer has several | a text | none |
| `factor` | how many times the demand of today there was | a number above 0 | **needed** |
| `usage` | what was used then | a number of at least 0 | **needed** |
| `limit` | what there is of it | a number above 0 | not measured |
| `unit` | the unit of both, one for each resource | a text | none |
| `axis` | what grew when it was measured | an axis of `tenfold grow` | it holds along any axis |

A row with an `axis` tells only of growth along that axis, and along `all`. Where a resource was \
measured along several axes, `all` has a law for each of them.
"""
