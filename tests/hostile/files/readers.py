"""Everything in Tenfold that reads a file: how it is called, and good files to start from."""

import gzip
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import tenfold.files
from replay_builders import job, recorded, request
from tenfold.facts.loader import load_catalogue
from tenfold.files.accesses import read_accesses
from tenfold.files.capacity.drivers import read_drivers
from tenfold.files.capacity.plan_file import read_plan_file
from tenfold.files.capacity.proposals import read_proposals
from tenfold.files.capacity.triggers import read_triggers
from tenfold.files.core import document, export_json, json_lines
from tenfold.files.fleet.merge import read_source
from tenfold.files.fleet.read import load_fleet, read_fleet
from tenfold.files.growth import read_grow
from tenfold.files.inventory.nodes_csv import read_nodes_csv
from tenfold.files.jobs.submission import read_job_file, read_submission
from tenfold.files.jobs.work_profiles import read_work_profiles
from tenfold.files.kubernetes.nodes import read_kubernetes_nodes
from tenfold.files.measured import baselines, nccl_tests, nsys_stats, steps, torch_trace
from tenfold.files.measured import read as measured
from tenfold.files.measured import rows as measured_rows
from tenfold.files.models.hf_config import read_hf_config
from tenfold.files.policy.burst import read_burst
from tenfold.files.policy.read import read_policy, read_policy_file
from tenfold.files.prices.layouts import read_listed_prices
from tenfold.files.prices.skypilot import read_price_catalogue
from tenfold.files.records.replay_bundle import read_bundle
from tenfold.files.records.shadow_log import ShadowEntry, last_entry, latest_entries
from tenfold.files.routing import read_keys, read_routing
from tenfold.files.sbatch.script import read_script
from tenfold.files.series.availability import read_availability
from tenfold.files.series.requests import read_requests
from tenfold.files.series.series import read_series, read_timed_series
from tenfold.files.series.simulated_service import read_simulated_service
from tenfold.files.services.service import read_service
from tenfold.files.sites import read_sites
from tenfold.files.slurm.accounting import read_accounting, read_accounting_text
from tenfold.files.slurm.conf import read_shown_policy, read_slurm_conf
from tenfold.files.slurm.job_text import read_job_text
from tenfold.files.slurm.node_use import read_node_use
from tenfold.files.slurm.nodes import read_slurm_file, read_slurm_nodes
from tenfold.files.slurm.queue import read_queue
from tenfold.files.slurm.settings import (
    read_bookings,
    read_limits,
    read_partitions,
    read_setting,
)
from tenfold.files.slurm.text import read_node_text
from tenfold.files.tiers import read_tiers
from tenfold.files.traces import csv_table, grid_intensity, kubernetes, node_faults, sacct, tables
from tenfold.files.traces.detect import detect, read_trace
from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.public import acme, alibaba_2020, alibaba_2023, helios, philly
from tenfold.model.fleet.spec import FleetSpec

with suppress(ImportError):
    # Reserves address space when it is loaded, which a bound on one file must not count.
    import_module("pyarrow.parquet")

ROOT = Path(__file__).parents[3]
CATALOGUE = load_catalogue()
NO_FLEET = FleetSpec(name="none", sites=(), pools=())
PROPOSAL = (
    '{"proposal":{"id":"p","rule":"r","kind":"queue","day":"2026-01-01","sentence":"s","value":5.0,'
    '"above":4.0,"evidence":"","status":"open"},"previous":"","hash":"0"}\n'
)
NOT_READERS = {
    "tenfold.files.core.read_errors.read_error": "makes an error",
    "tenfold.files.core.rows.read_row": "takes values, not a file",
    "tenfold.files.core.rows.read_rows": "takes values, not a file",
    "tenfold.files.fleet.read.read_tables": "takes values, not a file",
    "tenfold.files.policy.govern.read_governance": "takes values, not a file",
    "tenfold.files.prices.tables.read_table": "by read_price_catalogue",
    "tenfold.files.sbatch.script.read_options": "takes values, not a file",
    "tenfold.files.sbatch.values.read_dependency": "takes values, not a file",
    "tenfold.files.prices.offers.read_offers": "by read_listed_prices",
    "tenfold.files.prices.tables.read_columns": "by read_listed_prices",
    "tenfold.files.slurm.amounts.read_amounts": "takes values, not a file",
    "tenfold.files.slurm.conf_nodes.read_conf_nodes": "by read_slurm_file",
    "tenfold.files.jobs.task.read_task": "takes a document that read_document read",
    "tenfold.files.slurm.saved.read_saved": "hands each file of a folder to the readers of Slurm",
    "tenfold.files.traces.public.helios.read_log": "by read_helios and read_acme",
}
"""Functions whose name begins with `read_` and that are fuzzed through another, or read no file."""
JOB_TEXT = (
    "JobId=7 JobName=train\n   UserId=ann(1000) Account=vision JobState=PENDING\n"
    "   SubmitTime=2026-11-01T10:00:00 TimeLimit=1-00:00:00 NumNodes=2 ReqTRES=gres/gpu=16\n\n"
)
BOOKING_TEXT = (
    "ReservationName=maint StartTime=2026-11-01T10:00:00 EndTime=2026-11-01T12:00:00"
    " Nodes=n[1-4] State=INACTIVE Flags=MAINT\n"
)
LIMIT_TEXT = (
    "Name|User|Account|GrpTRES|MaxTRESPU|MaxJobsPU|\nnormal|ann|vision|gres/gpu=8|cpu=4|2|\n"
)
CSV = "job_id,submit_time_s,gpus,duration_s,team\na,0,1,60,red\nb,5,8,120,blue\n"
CONFIG = (
    '{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,'
    ' "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2,'
    ' "num_hidden_layers": 2, "vocab_size": 1000, "max_position_embeddings": 512}'
)
PRICES = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,"
    "AvailabilityZone,GpuInfo\np4d,A100,8,96,1152,32.77,9.8,us-east-1,us-east-1a,x\n"
)
SACCT = (
    "JobID|User|Account|Submit|Start|End|State|AllocTRES|ElapsedRaw|Timelimit|NNodes\n"
    "1|ann|red|2026-01-01T00:00:00|2026-01-01T00:01:00|2026-01-01T01:00:00|COMPLETED|"
    "cpu=8,gres/gpu=1|3540|02:00:00|1\n"
)
SLURM = (
    "PreemptType=preempt/qos\nPriorityWeightAge=1000\n"
    "NodeName=n[1-4] CPUs=64 Gres=gpu:h100:8\n"
    "PartitionName=main Nodes=n[1-4] Default=YES MaxTime=1-00:00:00 PriorityTier=1\n"
)
SBATCH = "#!/bin/bash\n#SBATCH -J a --array=1-9%2\n#SBATCH --gres=gpu:h100:2\nsrun true\n"
NODE_TEXT = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=32 CPUTot=64 Gres=gpu:h100:8(S:0-1)"
    " RealMemory=1031000 State=IDLE Partitions=main\n"
)
NCCL = (
    "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    "     1048576        262144     float     sum      -1    58.52   17.92   31.36      0\n"
    "# Avg bus bandwidth    : 31.36\n"
)
TORCH = (
    '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 5, "pid": 0,'
    ' "tid": 7}, {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0,'
    ' "dur": 9, "pid": 1, "tid": 1}]}'
)
NSYS = " Time (%)  Total Time (ns)  Instances  Avg (ns)  Name\n 90.0  1000  10  100.0  gemm\n"
POD = (
    '{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a",'
    ' "namespace": "red", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"containers":'
    ' [{"resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "500m", "memory": "1Gi"}}}]},'
    ' "status": {"phase": "Succeeded", "startTime": "2026-01-01T00:00:10Z"}}]}'
)


def _bundle() -> str:
    """Return the text of a small recorded run."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        jobs = [job("a", 8, lasts_s=60), job("b", 32, at_s=5, seq=1)]
        recorded(request("fifo", jobs=jobs, faults=[]), path)
        return path.read_text()


BUNDLE = _bundle()
PROFILES = '[work.train]\nread_mb_per_step = 1\nstep_s = 1.0\n[[profile]]\nname = "a"\n'


SITES_FLEET = load_fleet(ROOT / "examples/bank-three-sites/fleet.toml", CATALOGUE)
SITES = """[[site]]
name = "frankfurt"
engine = "local"
lost_after_s = 30
[[site]]
name = "dublin"
engine = "slurm"
partition = "gpu"
[[site]]
name = "zurich"
engine = "local"
"""
TIERS = """[tiers.hot]
replicas = 2
[[tiers.hot.backends]]
name = "a"
directory = "a"
domain = "one"
[[tiers.hot.backends]]
name = "b"
url = "s3://bucket/prefix"
domain = "two"
"""


class Reader(NamedTuple):
    """One reader: the name its files have, how it is called, and good files."""

    name: str
    file: str
    call: Callable[[Path], object]
    examples: tuple[str, ...] = ()
    """Paths of examples in this repository, or contents."""

    def seeds(self) -> list[bytes]:
        found: list[bytes] = []
        for one in self.examples:
            found_here = sorted(ROOT.glob(one)) if "\n" not in one and len(one) < 80 else []
            paths = [path for path in found_here if path.is_file()]
            found += [path.read_bytes()[:20_000] for path in paths[:4]] or [one.encode()]
        return found or [b""]


def _text(read: Callable[[str, str], object]) -> Callable[[Path], object]:
    return lambda path: read(document.read_text(path), str(path))


FLEETS, POLICIES, JOBS_CSV = (
    "examples/*/fleet.toml",
    "examples/policies/*.toml",
    "examples/*/jobs.csv",
)
READERS = (
    Reader("read_document", "a.toml", document.read_document, (FLEETS,)),
    Reader("read_document", "a.yaml", document.read_document, ("examples/*/fleet.yaml",)),
    Reader("read_text", "a.txt", document.read_text, (NCCL,)),
    Reader("read_bytes", "a.txt", document.read_bytes, (NCCL,)),
    Reader("read_fleet", "fleet.toml", lambda p: read_fleet(p, CATALOGUE), (FLEETS,)),
    Reader(
        "read_fleet", "fleet.yaml", lambda p: read_fleet(p, CATALOGUE), ("examples/*/fleet.yaml",)
    ),
    Reader("load_fleet", "fleet.toml", lambda p: load_fleet(p, CATALOGUE), (FLEETS,)),
    Reader("read_source", "fleet.toml", lambda p: read_source(p, CATALOGUE), (FLEETS,)),
    Reader("read_grow", "grow.toml", lambda p: read_grow(p, CATALOGUE), ("examples/*/grow.toml",)),
    Reader(
        "read_plan_file",
        "plan.toml",
        lambda p: read_plan_file(p, CATALOGUE, NO_FLEET),
        ("examples/*/plan.toml",),
    ),
    Reader(
        "read_drivers",
        "drivers.toml",
        lambda p: read_drivers([p], CATALOGUE, NO_FLEET),
        ("examples/*/drivers.toml",),
    ),
    Reader("read_triggers", "triggers.toml", read_triggers, ("examples/*/triggers.toml",)),
    Reader("read_proposals", "proposals.jsonl", read_proposals, (PROPOSAL,)),
    Reader("read_timed_series", "series.csv", read_timed_series, ("examples/demand/gpus.csv",)),
    Reader("read_policy", "policy.toml", read_policy, (POLICIES,)),
    Reader("read_policy_file", "policy.toml", read_policy_file, (POLICIES,)),
    Reader("read_policy_file", "policy.yaml", read_policy_file, ("policy: las\nteams: []\n",)),
    Reader("read_slurm_conf", "slurm.conf", read_slurm_conf, ("examples/*/slurm.conf", SLURM)),
    Reader("read_submission", "job.toml", read_submission, ("examples/jobs/*.toml",)),
    Reader("read_submission", "job.yaml", read_submission, ("examples/jobs/*.yaml",)),
    Reader("read_job_file", "job.toml", read_job_file, ("examples/jobs/*.toml",)),
    Reader("read_work_profiles", "work.toml", read_work_profiles, (PROFILES,)),
    Reader("read_trace", "jobs.csv", read_trace, (JOBS_CSV, CSV)),
    Reader("read_trace", "trace.json", read_trace, (POD,)),
    Reader("detect", "jobs.csv", lambda p: detect([p]), (CSV, SACCT)),
    Reader("read_jobs", "jobs.csv", read_jobs, (JOBS_CSV, CSV)),
    Reader("read_jobs", "jobs.csv.gz", read_jobs, (CSV,)),
    Reader("read_jobs", "jobs.parquet", read_jobs, (CSV,)),
    Reader("read_table", "table.csv", lambda p: tables.read_table(p, ["job_id", "gpus"]), (CSV,)),
    Reader("read_plain_bytes", "a.csv", csv_table.read_plain_bytes, (CSV,)),
    Reader("read_plain_bytes", "a.csv.gz", csv_table.read_plain_bytes, (CSV,)),
    Reader("read_sacct", "sacct.txt", sacct.read_sacct, (SACCT,)),
    Reader("read_kubernetes", "pods.json", kubernetes.read_kubernetes, (POD,)),
    Reader("read_acme", "trace.csv", acme.read_acme, (CSV,)),
    Reader("read_helios", "trace.csv", helios.read_helios, (CSV,)),
    Reader("read_alibaba_2020", "tasks.csv", alibaba_2020.read_alibaba_2020, (CSV,)),
    Reader("read_pai_files", "tasks.csv", lambda p: alibaba_2020.read_pai_files([p]), (CSV,)),
    Reader("read_openb_pods", "pods.csv", alibaba_2023.read_openb_pods, (CSV,)),
    Reader("read_philly", "cluster_job_log.json", philly.read_philly, ('[{"jobid": "a"}]\n',)),
    Reader("read_fault_trace", "faults.csv", node_faults.read_fault_trace, (CSV,)),
    Reader(
        "read_intensity",
        "intensity.csv",
        grid_intensity.read_intensity,
        ("examples/*/intensity.csv",),
    ),
    Reader(
        "read_slurm_nodes", "nodes.json", _text(read_slurm_nodes), ("examples/clusters/slurm*",)
    ),
    Reader("read_slurm_nodes", "nodes.txt", _text(read_slurm_nodes), (NODE_TEXT,)),
    Reader(
        "read_slurm_file",
        "nodes.conf",
        lambda path: read_slurm_file(path, 1 << 20),
        ("examples/*/slurm.conf", SLURM, NODE_TEXT),
    ),
    Reader("read_node_text", "nodes.txt", _text(read_node_text), (NODE_TEXT,)),
    Reader("read_node_use", "nodes.txt", _text(read_node_use), (NODE_TEXT,)),
    Reader("read_queue", "queue.json", _text(read_queue), ("examples/clusters/*/queue.json",)),
    Reader("read_accounting", "sacct.txt", read_accounting, ("examples/clusters/*/sacct.txt",)),
    Reader("read_accounting_text", "sacct.txt", _text(read_accounting_text), (SACCT,)),
    Reader(
        "read_shown_policy",
        "config.txt",
        _text(lambda t, f: read_shown_policy(t, t, f)),
        ("examples/clusters/*/config.txt", "examples/clusters/*/partitions.txt"),
    ),
    Reader("read_job_text", "jobs.txt", _text(read_job_text), (JOB_TEXT,)),
    Reader(
        "read_partitions",
        "partitions.txt",
        _text(lambda t, f: read_partitions(t)),
        ("examples/clusters/*/partitions.txt",),
    ),
    Reader("read_bookings", "bookings.txt", _text(lambda t, f: read_bookings(t)), (BOOKING_TEXT,)),
    Reader("read_limits", "limits.txt", _text(lambda t, f: read_limits(t, t)), (LIMIT_TEXT,)),
    Reader(
        "read_setting",
        "config.txt",
        _text(lambda t, f: read_setting(t, "MaxArraySize")),
        ("examples/clusters/*/config.txt",),
    ),
    Reader("read_routing", "routing.toml", read_routing, ("examples/gateway/*.toml",)),
    Reader("read_keys", "keys.toml", read_keys, ('elsewhere = "secret"\n',)),
    Reader("read_service", "service.toml", read_service, ("examples/serve-stub/*.toml",)),
    Reader("read_requests", "requests.csv", read_requests, ("examples/autoscale/requests.csv",)),
    Reader(
        "read_simulated_service",
        "service.toml",
        read_simulated_service,
        ("examples/autoscale/service.toml",),
    ),
    Reader("read_script", "job.sbatch", _text(lambda t, f: read_script(f, t)), (SBATCH,)),
    Reader("read_availability", "a.csv", read_availability, ("examples/spot/availability.csv",)),
    Reader("read_series", "a.csv", read_series, ("examples/demand/gpus.csv",)),
    Reader("read_accesses", "a.csv", read_accesses, ("examples/objects/training-epochs.csv",)),
    Reader("read_tiers", "tiers.toml", read_tiers, (TIERS,)),
    Reader("read_sites", "sites.toml", lambda p: read_sites(p, SITES_FLEET), (SITES,)),
    Reader(
        "read_burst",
        "burst.toml",
        lambda p: read_burst(p, CATALOGUE.accelerators),
        ("examples/burst/burst.toml",),
    ),
    Reader(
        "read_listed_prices",
        "a.csv",
        lambda p: read_listed_prices(p, CATALOGUE.accelerators),
        ("examples/offers/*.csv",),
    ),
    Reader(
        "read_listed_prices",
        "a.json",
        lambda p: read_listed_prices(p, CATALOGUE.accelerators),
        ('[{"instance_name": "a", "price": 2.0,\n"gpu_name": "H100", "gpu_count": 8}]',),
    ),
    Reader(
        "read_kubernetes_nodes", "n.json", _text(read_kubernetes_nodes), ("examples/clusters/kub*",)
    ),
    Reader("read_nodes_csv", "nodes.csv", _text(read_nodes_csv), ("examples/clusters/nodes.csv",)),
    Reader(
        "read_json", "a.json", _text(lambda t, f: export_json.read_json(t, f, "scontrol")), (POD,)
    ),
    Reader(
        "read_json_lines",
        "a.jsonl",
        lambda p: json_lines.read_json_lines(p, ShadowEntry),
        ("examples/shadow/shadow.jsonl",),
    ),
    Reader("read_hf_config", "config.json", read_hf_config, (CONFIG,)),
    Reader(
        "read_price_catalogue",
        "prices.csv",
        lambda p: read_price_catalogue(p, CATALOGUE.accelerators, source="s", date="2026-01-01"),
        (PRICES,),
    ),
    Reader(
        "measured.read_measured",
        "measured.csv",
        measured_rows.read_measured,
        ("examples/*/measured.csv",),
    ),
    Reader("read_measured", "steps.jsonl", measured.read_measured, ("examples/baselines/*.jsonl",)),
    Reader("read_measured", "nccl.txt", measured.read_measured, (NCCL,)),
    Reader("read_measured", "trace.json", measured.read_measured, (TORCH,)),
    Reader("read_nccl_tests", "nccl.txt", _text(nccl_tests.read_nccl_tests), (NCCL,)),
    Reader("read_nsys_stats", "nsys.txt", _text(nsys_stats.read_nsys_stats), (NSYS,)),
    Reader(
        "read_torch_trace",
        "trace.json",
        lambda p: torch_trace.read_torch_trace(document.read_bytes(p), str(p), 0),
        (TORCH,),
    ),
    Reader(
        "read_step_lines",
        "steps.jsonl",
        _text(lambda t, f: steps.read_step_lines(t, f, 0)),
        ("examples/baselines/*.jsonl",),
    ),
    Reader(
        "read_step_csv",
        "steps.csv",
        _text(lambda t, f: steps.read_step_csv(t, f, 0)),
        ("step,step_s\n1,0.5\n2,0.6\n",),
    ),
    Reader("read_store", "baselines.json", baselines.read_store, ('{"baselines": []}',)),
    Reader("read_bundle", "bundle.jsonl", read_bundle, (BUNDLE,)),
    Reader("read_bundle", "bundle.jsonl.gz", read_bundle, (BUNDLE,)),
    Reader("last_entry", "shadow.jsonl", last_entry, ("examples/shadow/shadow.jsonl",)),
    Reader(
        "latest_entries",
        "shadow.jsonl",
        lambda p: latest_entries(p, 10),
        ("examples/shadow/shadow.jsonl",),
    ),
    Reader(
        "load_catalogue",
        "accelerators.toml",
        lambda p: load_catalogue(p.parent, without=("models", "prices", "stacks")),
        ("examples/own-facts/facts/*.toml",),
    ),
)
DEEP = 100_000
NASTY: dict[str, bytes] = {
    "empty": b"",
    "nul": b"\0",
    "nul in text": b'name = "a\0b"\na,b\0c\n{"a": "\0"}\n',
    "only a byte order mark": b"\xef\xbb\xbf",
    "utf-16": 'name = "a"\n'.encode("utf-16"),
    "not utf-8": b'name = "\xff\xfe"\na,\xff\n',
    "an overlong encoding": b"\xc0\xaf\xe0\x80\xaf",
    "a surrogate in utf-8": b'a = "\xed\xa0\x80"\n{"a": "\xed\xa0\x80"}',
    "a lone surrogate in json": b'{"a": "\\ud800", "kind": "\\udfff"}\n',
    "only blanks": b" \t\r\n\x0b\x0c" * 100,
    "carriage returns": b"a,b\r1,2\rname = 1\r",
    "lists without end": b"[" * DEEP,
    "lists nested deep": b"[" * DEEP + b"]" * DEEP,
    "objects nested deep": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a toml list nested deep": b"a = " + b"[" * DEEP + b"]" * DEEP,
    "toml tables nested deep": b"a = " + b"{a = " * 2_000 + b"1" + b"}" * 2_000,
    "a dotted key": b".".join([b"a"] * 20_000) + b" = 1\n",
    "a dotted table": b"[" + b".".join([b"a"] * 20_000) + b"]\n",
    "yaml nested deep": b"\n".join(b" " * depth + b"a:" for depth in range(3_000)),
    "yaml flow nested deep": b"a: " + b"[" * DEEP,
    "yaml dashes nested deep": b"- " * 50_000,
    "yaml aliases that multiply": b"a0: &a0 [x, x]\n"
    + b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 40)),
    "a yaml alias of itself": b"a: &a [*a]\n",
    "a yaml tag": b"a: !!python/object/apply:os.system ['true']\n",
    "a yaml tag of another type": b"a: !!int\nb: !!int x\nc: !!float\nd: !!null x\ne: !!bool\n",
    "a yaml tag and nothing else": b"!!int ",
    "a yaml tag for bytes": b"a: !!binary \xc3\xa4\nb: !!binary x\n",
    "many yaml documents": b"---\na: 1\n" * 1_000,
    "an integer of 5,000 digits": b"a = 1" + b"0" * 5_000 + b"\n",
    "a json integer of 5,000 digits": b'{"a": 1' + b"0" * 5_000 + b"}\n",
    "a yaml integer of 5,000 digits": b"a: 1" + b"0" * 5_000 + b"\n",
    "a csv integer of 5,000 digits": CSV.encode().replace(b",1,", b",1" + b"0" * 5_000 + b","),
    "a csv of no number": CSV.encode().replace(b",1,", b",nan,").replace(b",60,", b",inf,"),
    "json that is no number": b'{"a": NaN, "b": Infinity, "c": 1e999}\n',
    "toml that is no number": b"a = nan\nb = inf\nc = -inf\nd = 1e999\n",
    "a day that is none": b"a = 2026-02-30\nb = 9999-12-31T23:59:60Z\nc = 0000-01-01\n",
    "a key of a megabyte": b"a" * (1 << 20) + b" = 1\n",
    "a line of two megabytes": b"a,b\n" + b"x" * (2 << 20) + b",1\n",
    "a quote without an end": b'a,b\n"' + b"x,\n" * 1_000,
    "quotes": b'"""' * 1_000,
    "ten thousand columns": b",".join(b"c%d" % n for n in range(10_000)) + b"\n" + b"1," * 10_000,
    "a hundred thousand short lines": b"a\n" * 100_000,
    "keys twice": b'{"a": 1, "a": 2}\n',
    "toml keys twice": b"a = 1\na = 2\n",
    "one value of each type": b'["", 0, null, true, {}, []]',
    "a text": b'"text"',
    "null": b"null",
    "parquet in name only": b"PAR1" + b"\0" * 100 + b"\xff\xff\xff\x7fPAR1",
    "gzip in name only": b"\x1f\x8b\x08\0garbage",
    "half a gzip": gzip.compress(CSV.encode() * 100)[:60],
    "a gzip that grows 1,000 times": gzip.compress(b"0" * (64 << 20)),
    "zstandard in name only": b"\x28\xb5\x2f\xfd" + b"\xff" * 20,
    "a host list of a billion": b'[[pool]]\nname = "n[1-1000000000]"\nnodes = "n[1-1000000000]"\n'
    b"count = 1000000000\nNodeName=n[1-1000000000] CPUs=1 Gres=gpu:8\n",
    "nested host lists": b"NodeName=n[1-99999][1-99999][1-99999] CPUs=1\n",
    "escapes": b'name = "\\u001b[2J"\nNodeName=\x1b[31m CPUs=1\n{"name": "\\u001b[2J"}\n',
}


def public_readers() -> Iterator[str]:
    """Yield every function of the room of files whose name says that it reads."""
    for module in pkgutil.walk_packages(tenfold.files.__path__, "tenfold.files."):
        found = import_module(module.name)
        for name, one in inspect.getmembers(found, inspect.isfunction):
            if name.startswith("read_") and one.__module__ == module.name:
                yield f"{module.name}.{name}"
