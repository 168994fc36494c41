"""Test your own policies: nodes, jobs and fleets in one line each, and runs in virtual time.

`run_policy` drives a policy with the same loop and simulator as `tenfold sim`.
"""

from tenfold.testing.builders import fleet, in_domains, job, nodes
from tenfold.testing.policy_run import PolicyRun, outage, run_policy

__all__ = ["PolicyRun", "fleet", "in_domains", "job", "nodes", "outage", "run_policy"]
