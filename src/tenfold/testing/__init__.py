"""Builders and virtual-time runs for tests of your own policies; part of the public API.

Belongs here: what users need to test a policy without a control plane.
Does not belong here: Tenfold's own test rigs (tests/rigs).
"""

from tenfold.testing.builders import fleet, in_domains, job, nodes
from tenfold.testing.policy_run import PolicyRun, outage, run_policy

__all__ = ["PolicyRun", "fleet", "in_domains", "job", "nodes", "outage", "run_policy"]
