"""Names that were replaced by the field's own words do not come back as identifiers or modules."""

import ast
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tenfold"
REPLACED = {
    "Walk": "SchedulingPass",
    "Books": "SchedulerState",
    "Lines": "PendingQueues",
    "Class": "JobClass",
    "Holding": "Allocation",
    "Holdings": "Allocations",
    "Holder": "RankedAllocation",
    "Stand": "RankBucket",
    "Standing": "PreemptionOrder",
    "Givers": "VictimIndex",
    "_Makers": "NodeVictims",
    "Coming": "ReleasingCapacity",
    "Lent": "PipelinedStarts",
    "Owing": "PreemptionEligibility",
    "Wanting": "BlockedPreemptors",
    "Promise": "BackfillReservation",
    "Promising": "ReservationPass",
    "Bank": "FreeNodeIndex",
    "Seat": "GangSplit",
    "ripe": "preemptible_from",
    "stirred": "dirty",
    "rouse": "requeue",
    "at_home": "within_quota",
    "lately": "decayed_usage",
    "turns": "fair_share_order",
    "hurdle": "blocking_limit",
    "Elsewhere": "AvoidFailedNodes",
    "AfterOthers": "DependencyGate",
    "told": "schemas",
    "handed_in": "submissions",
    "asked": "inbox_client",
    "Fittings": "ServerDeps",
    "Book": "JobRegistry",
    "Sighting": "Observation",
    "sighting": "observation",
    "Mishap": "AttemptFailure",
    "mishap": "failure",
    "undertaker": "orphan_reaper",
    "Ground": "PlanningTarget",
    "deserved": "entitlement",
    "climb": "analyse",
    "stood": "meets_requirement",
}
"""Old name -> the word that took its place. The old one is no identifier any more."""
REPLACED_MODULES = {
    "shown": "redaction",
    "masked": "redaction",
    "keyed": "idempotency",
    "newest": "event_cursor",
    "beside": "background",
    "gate": "limiter",
    "serving": "runtime",
    "crew": "supervisor_pool",
    "carries": "capacity_summary",
    "walk": "scheduling_pass",
    "books": "scheduler_state",
    "lines": "pending_queues",
    "holdings": "allocations",
    "givers": "victim_index",
    "owing": "preemption_eligibility",
    "promises": "backfill_reservation",
    "promising": "reservation_pass",
    "elsewhere": "avoid_failed_nodes",
    "ground": "target",
    "home": "state_dir",
    "book": "job_registry",
    "mishaps": "failures",
}
"""Plain words, fine as variables, that were modules with another meaning."""
MODULES_KEPT = {"study/grow/layers/compute/serving.py": "the growth layer of inference services"}


def identifiers(tree: ast.AST) -> Counter[str]:
    """Count the names that a module defines, takes or uses."""
    found: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                found[name] += 1
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found[name] += 1
            case ast.AsyncFunctionDef(name=name):
                found[name] += 1
            case ast.keyword(arg=str(name)):
                found[name] += 1
            case ast.alias(name=name, asname=local):
                found.update(part for part in name.split("."))
                if local:
                    found[local] += 1
    return found


def replaced_names(package: Path) -> dict[str, int]:
    """Return uses of replaced names by file and name."""
    uses: dict[str, int] = {}
    for path in sorted(package.rglob("*.py")):
        where = path.relative_to(package)
        if path.stem in REPLACED | REPLACED_MODULES and str(where) not in MODULES_KEPT:
            uses[f"{where}: the module"] = 1
        for name, count in sorted(identifiers(ast.parse(path.read_text())).items()):
            if name in REPLACED:
                uses[f"{where}: {name} is now {REPLACED[name]}"] = count
    return uses


def test_no_replaced_name_is_an_identifier_in_src():
    assert replaced_names(PACKAGE) == {}


def test_a_replaced_name_is_found(tmp_path: Path):
    (tmp_path / "books.py").write_text("class Books:\n    def stirred(self, lately: int): ...\n")
    assert list(replaced_names(tmp_path)) == [
        "books.py: the module",
        "books.py: Books is now SchedulerState",
        "books.py: lately is now decayed_usage",
        "books.py: stirred is now dirty",
    ]
