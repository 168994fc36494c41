"""A Prometheus that really runs scrapes a control plane that really runs."""

from pathlib import Path

import pytest

import tenfold
from engines.prometheus import require_prometheus, running_prometheus
from patience import HANG_S
from tenfold.client.endpoint import read_address
from tenfold.report.dashboards import DASHBOARDS
from unit.up_process import Up

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def prometheus() -> None:
    require_prometheus()


def test_a_viewers_token_is_all_that_it_takes(up: Up, tmp_path: Path):
    up.start("--virtual-nodes", "2")
    at = read_address(up.home)
    assert at is not None
    with tenfold.Client() as client:
        viewer = client.create_token("prometheus", team="ops", role="viewer", days=1).token
        made = [client.submit(command=["true"]).id for _ in range(3)]
        for job_id in made:
            client.wait(job_id, timeout_s=HANG_S)
    with running_prometheus(tmp_path / "prometheus", at.url, viewer) as prometheus:
        prometheus.until("up", 1)
        prometheus.until('tenfold_jobs{state="succeeded"}', 3)
        prometheus.until("tenfold_submitted_jobs_total", 3)
        prometheus.until('tenfold_nodes{state="up"}', 2)
        prometheus.until("tenfold_loop_up", 1)
        prometheus.until("count(tenfold_journal_commit_seconds_bucket) > bool 5", 1)
        for one in DASHBOARDS.values():
            for query in (query for panel in one.panels for query in panel.queries):
                # An answer with status 200, whether or not there is anything to see yet.
                prometheus.answers(query.expr)
        assert prometheus.answers("sum by (state) (tenfold_jobs)") > 3
        up.interrupt()
        prometheus.until("up", 0)
