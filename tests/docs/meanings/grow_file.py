"""The meaning of each table and key of a grow file, and the value it has when left out."""

GROW_TABLES = {
    "limits": "The values beyond which a layer counts as broken. The defaults are assumptions.",
    "controller": "A scheduler and its admission rate. For a job history from Slurm, the "
    "`slurm.conf` given with `--policy` is used instead.",
    "service": "A service, its load today and its latency objectives.",
    "dataset": "Data stored on a tier.",
    "monitoring": "Time series, scrape interval and storage of a Prometheus server.",
    "operations": "Repair staff and spare nodes. `--failures` sets the failure rate of nodes.",
    "facility": "Floor space and free ports of the building.",
    "prices": "Monthly prices of capacity, used to price fixes. Missing prices are assumed "
    "from the range of `tenfold facts list --kind unit-price`, and marked with `~`.",
    "lead_time": "Time from order to use of one kind of hardware. A fix that needs this hardware "
    "shows the latest order date.",
    "pace": "How fast demand grows, and the date from which it grows. The system clock is not "
    "used, so the same file always gives the same result.",
    "grown": "The fleet that a planned fleet was grown from; `tenfold grow --apply` writes it. The "
    "job history, failures and switches are those of the original fleet.",
}

GROW_KEYS = {
    "limits": {
        "wait_s_p90": (
            "maximum P90 wait: of all jobs, weighted by GPU time, and of each team and job size",
            "14,400",
        ),
        "step_efficiency_least": (
            "minimum speed per GPU of a larger job, relative to today's job",
            "0.8",
        ),
        "stall_share_most": ("maximum share of GPU time lost to contention", "0.05"),
        "attainment_least": (
            "minimum share of requests that meet their objective; the others arrive at peaks",
            "0.99",
        ),
        "kw_most": ("maximum power of all sites together", "no limit"),
        "usd_per_month_most": ("maximum monthly cost", "unknown"),
        "headroom_least": ("minimum share of every capacity to keep free", "0"),
        "admission_wait_s_most": (
            "maximum mean wait for a controller (M/D/1)",
            "300",
        ),
        "spare_shortfall_share_most": (
            "maximum share of time with more nodes down than spares",
            "0.01",
        ),
        "fairness_least": (
            "minimum fairness: GPU time that teams receive relative to their entitlement",
            "0.8",
        ),
        "stranded_share_most": ("maximum share of GPUs that are idle because no job fits", "0.15"),
        "lost_share_most": ("maximum share of job time lost to checkpoints and failures", "0.1"),
    },
    "controller": {
        "kind": ("kind of controller", ""),
        "queue": (
            "queue that these values apply to: a team in the job history, or a `queue` in the "
            "measurements",
            "the busiest queue",
        ),
        "cycles_per_min": ("scheduling cycles per minute", "unknown"),
        "heads_per_cycle": ("jobs per queue that are tried in a cycle", "1"),
        "admitted_share": ("share of tried jobs that are admitted", "all"),
        "cost_ms_per_job": ("measured controller time per job", "unknown"),
    },
    "service": {
        "name": ("name of the service", ""),
        "model": ("a model in the facts", ""),
        "qps": ("requests per second", ""),
        "input_tokens": ("prompt length in tokens", ""),
        "output_tokens": ("response length in tokens", ""),
        "ttft_s": ("objective for the time to first token", "no objective"),
        "tpot_s": ("objective for the time per output token", "no objective"),
        "pool": ("pool that the service runs on", "the largest pool with GPUs"),
        "replicas_most": ("maximum number of replicas", "as many as fit in the pool"),
    },
    "dataset": {
        "name": ("name of the dataset", ""),
        "tier": ("tier that stores the dataset", ""),
        "tb": ("size today", ""),
        "grows_with": ("axis along which it grows; `all` means every axis", "`data`"),
        "source_site": (
            "site from which it is copied over a link; needs `copies_per_month`",
            "none",
        ),
        "copies_per_month": ("how often it is copied from `source_site` in whole", "none"),
    },
    "monitoring": {
        "series_per_node": ("time series per node", "unknown"),
        "series_per_gpu": ("time series per GPU, in addition to those of its node", "none"),
        "interval_s": ("scrape interval", "unknown"),
        "samples_per_s_most": ("maximum samples ingested per second", "unknown"),
        "retention_days": ("retention of samples", "unknown"),
        "bytes_per_sample": ("bytes per sample on disk", "1.7"),
        "store_tb": ("disk space for samples", "unknown"),
    },
    "operations": {
        "crew": ("number of repair technicians", "unknown"),
        "repairs_per_person_day": ("repairs per technician per day", "unknown"),
        "nodes_per_person_most": ("maximum nodes per technician", "no limit"),
        "usd_per_person_month": ("monthly cost of a technician", "assumed"),
        "spares": (
            "spare nodes, in addition to those of the fleet file; they draw power and fill racks",
            "unknown",
        ),
        "checkpoint_every_min": (
            "checkpoint interval of jobs without one in the job history",
            "60, an assumption",
        ),
    },
    "facility": {
        "floor_racks": ("rack positions, including those in use", "unknown"),
        "ports_free": ("free switch ports", "derived from the fabrics"),
    },
    "prices": {
        "usd_per_switch_port_month": ("a switch port with its cable and optics", "assumed"),
        "usd_per_rack_month": ("a rack position, without power", "assumed"),
        "usd_per_kw_month": ("a kW of power and cooling capacity, without energy", "assumed"),
        "usd_per_tb_month": (
            "a TB of storage, for tiers without a price and for monitoring",
            "assumed",
        ),
        "usd_per_gbps_month": ("a Gbit/s on a link between sites", "assumed"),
    },
    "lead_time": {
        "thing": (
            "what is ordered: `nodes`, `site-power`, `rack-power`, `rack`, `switch`, `link`, "
            "`floor` or `storage`",
            "",
        ),
        "weeks_p50": ("median lead time; leave it out if `stages` are stated", "from `stages`"),
        "weeks_p90": ("P90 lead time, used for order dates", "from `stages`"),
        "stages": (
            "P50 and P90 in weeks of each stage: `order`, `delivery`, `installation`, "
            "`integration` and `validation`; the P90 of their sum is used for order dates",
            "one stage",
        ),
    },
    "pace": {
        "today": ("date from which demand grows", ""),
        "doubles_in_months": ("number of months in which demand doubles", ""),
    },
    "grown": {
        "fleet": ("the original fleet file, as a path relative to this file", ""),
        "policy": ("new policy", "the policy that the jobs ran under"),
        "sched_max_job_start": ("new `sched_max_job_start`", "as in the slurm.conf"),
        "quota_gpus": ("quota of each team in GPUs, under the policy `governed`", "as before"),
        "free_borrowing": ("whether teams borrow and lend without a limit", "as before"),
        "async_checkpoints": ("whether checkpoints are written asynchronously", "false"),
        "capacity": (
            "multiples of capacities that no other key states, by layer and resource, such as "
            '`{ "switch-ports:fabric net" = 32 }`',
            "none",
        ),
        "usd_per_month": ("monthly cost of ports, racks, power and links of the fixes", "none"),
    },
}

GROW_TAKES = {
    "limits.attainment_least": "a number from 0.5 to below 1",
    "limits.headroom_least": "a number from 0 to below 1",
    "service.pool": "a pool of the fleet",
    "dataset.tier": "a tier of the fleet",
    "dataset.grows_with": "an axis of `tenfold grow`",
    "dataset.source_site": "another site of the fleet",
    "lead_time.weeks_p90": "a number of at least `weeks_p50`",
    "pace.today": "a date such as 2026-11-15",
}
"""The type of a key, where the schema says less."""

MEASURED = """\
## The measurements file

`tenfold grow --measured` reads a CSV file with a header and one row per measurement. Measured \
values of a layer replace its calculated ones.

<!-- check: usage -->
```csv
layer,resource,factor,usage,limit,unit,axis
monitoring,prometheus,1,0.1,0.5,cores,nodes
monitoring,prometheus,2,0.2,0.5,cores,nodes
```

| column | meaning | type | default |
|---|---|---|---|
| `layer` | layer that the measurement belongs to | a string of 1 to 200 characters | **required** |
| `resource` | measured resource | a string of 1 to 200 characters | **required** |
| `queue` | measured queue, if a layer has several | a string | none |
| `factor` | demand relative to today | a number above 0 | **required** |
| `usage` | measured usage | a number of at least 0 | **required** |
| `limit` | capacity of the resource | a number above 0 | not measured |
| `unit` | unit of `usage` and `limit`; the same for all rows of a resource | a string | none |
| `axis` | axis that grew during the measurement | an axis of `tenfold grow` | any axis |

A row with an `axis` applies only to growth along that axis, and along `all`. If a resource was \
measured along several axes, `all` combines them.
"""
