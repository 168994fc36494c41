"""All reasons by code: every reason is registered here."""

from collections.abc import Mapping

from tenfold.report.reasons.bursts import BURSTS
from tenfold.report.reasons.models import MODELS
from tenfold.report.reasons.nodes import NODES
from tenfold.report.reasons.plans import PLANS
from tenfold.report.reasons.remedies import REMEDIES
from tenfold.report.reasons.requests import REQUESTS
from tenfold.report.reasons.running import ATTEMPTS, ENDS, STAGES
from tenfold.report.reasons.scaling import SCALING
from tenfold.report.reasons.services import SERVICES
from tenfold.report.reasons.slurm import SLURM
from tenfold.report.reasons.stops import STOPS
from tenfold.report.reasons.template import Template
from tenfold.report.reasons.waiting import NEVER, RULES, WAITING

PARTS = (
    WAITING,
    RULES,
    NEVER,
    STOPS,
    STAGES,
    ENDS,
    ATTEMPTS,
    NODES,
    REMEDIES,
    REQUESTS,
    PLANS,
    SCALING,
    SERVICES,
    SLURM,
    MODELS,
    BURSTS,
)
REASONS: Mapping[str, Template] = {
    code: template for part in PARTS for code, template in part.items()
}
SHOWN: Mapping[str, str] = {code: one.shown for code, one in REASONS.items() if one.shown}
"""Stored codes that are shown under another name. Journals and replay keep the stored code."""
STORED: Mapping[str, str] = {shown: code for code, shown in SHOWN.items()}


def shown_code(code: str) -> str:
    """Return the code that people and JSON see for a stored code."""
    return SHOWN.get(code, code)


def template_of(code: str) -> Template | None:
    """Return the template of a stored or shown code."""
    return REASONS.get(STORED.get(code, code))
