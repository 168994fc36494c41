"""Read the traces of Shanghai AI Laboratory's Acme: `trace_seren.csv` and `trace_kalos.csv`.

They follow Helios, without virtual clusters and with the kind of work in `type`, which
becomes the job's `qos`. Memory is given for each pod, and a node holds one pod of a job.
"""

from pathlib import Path

from tenfold.files.traces.public.helios import read_log
from tenfold.files.traces.trace import JobTrace

COLUMNS = ("job_id", "user", "node_num", "gpu_num", "cpu_num", "type", "state", "submit_time")


def read_acme(path: Path) -> JobTrace:
    """Return the jobs of an Acme trace that ran."""
    return read_log(path, COLUMNS)
