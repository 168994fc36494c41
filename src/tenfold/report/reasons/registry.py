"""Every reason there is, by its code: a reason is added here and nowhere else."""

from collections.abc import Mapping

from tenfold.report.reasons.nodes import NODES
from tenfold.report.reasons.plans import PLANS
from tenfold.report.reasons.remedies import REMEDIES
from tenfold.report.reasons.requests import REQUESTS
from tenfold.report.reasons.running import ATTEMPTS, ENDS, STAGES
from tenfold.report.reasons.stops import STOPS
from tenfold.report.reasons.template import Template
from tenfold.report.reasons.waiting import NEVER, WAITING

PARTS = (WAITING, NEVER, STOPS, STAGES, ENDS, ATTEMPTS, NODES, REMEDIES, REQUESTS, PLANS)
REASONS: Mapping[str, Template] = {
    code: template for part in PARTS for code, template in part.items()
}
