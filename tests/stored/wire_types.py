"""Every type that is written to a disk, by the name that stands for it in the wire listing.

Python names may change: then this table is edited and the listing stays. Types that have a tag go
by it. What the roots lead to must be named here too; a test walks them.
"""

from collections.abc import Sequence
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from msgspec import NODEFAULT, UNSET, Struct, UnsetType, json, structs

from tenfold.client.endpoint import Address
from tenfold.engine.decision_log import Cycle
from tenfold.engine.policy_spans import PolicySpan
from tenfold.engine.shadow import ShadowDifference
from tenfold.files.measured.baselines import BaselineStore
from tenfold.files.records.replay_bundle import BundleEnd, BundleHeader
from tenfold.files.records.shadow_log import ShadowEntry
from tenfold.fleet.image import FleetImage
from tenfold.live.local.spawner import wire
from tenfold.model import acceptance, actions, baseline, events, reason, registry
from tenfold.model.fleet import constraints, node
from tenfold.model.fleet.node import NodeState
from tenfold.model.job import failures, job, origin, run_spec, submission, terms
from tenfold.model.policy import governance, site_costs
from tenfold.model.policy import slurm as slurm_policy
from tenfold.model.policy.policy import Policy
from tenfold.model.service import replica, routing
from tenfold.model.service import spec as service_spec
from tenfold.model.service import state as service_state
from tenfold.server.auth.tokens import Role
from tenfold.sim.settings import SimSettings

ROOTS: dict[str, object] = {
    "event": events.Event,
    "cycle": Cycle,
    "policy": Policy,
    "snapshot": FleetImage,
    "acceptance": acceptance.Acceptance,
    "bundle-header": BundleHeader,
    "bundle-end": BundleEnd,
    "bundle-settings": SimSettings,
    "shadow-entry": ShadowEntry,
    "baselines": BaselineStore,
    "address": Address,
}
"""What one line, file or column holds: each is decoded by itself."""

STRUCTS: dict[str, type[Struct]] = {
    "NodeJoined": events.NodeJoined,
    "NodeLost": events.NodeLost,
    "NodeReturned": events.NodeReturned,
    "NodeCordoned": events.NodeCordoned,
    "NodeLeft": events.NodeLeft,
    "NodeTested": events.NodeTested,
    "NodeAccepted": events.NodeAccepted,
    "JobSubmitted": events.JobSubmitted,
    "JobRefused": events.JobRefused,
    "JobStarted": events.JobStarted,
    "JobStopped": events.JobStopped,
    "JobEnded": events.JobEnded,
    "JobCancelled": events.JobCancelled,
    "JobCancelRequested": events.JobCancelRequested,
    "JobResized": events.JobResized,
    "JobIdled": events.JobIdled,
    "JobBusy": events.JobBusy,
    "JobHeld": events.JobHeld,
    "JobReleased": events.JobReleased,
    "JobChanged": events.JobChanged,
    "ModelRegistered": events.ModelRegistered,
    "ModelAliasMoved": events.ModelAliasMoved,
    "ModelStaged": events.ModelStaged,
    "ModelVersionRemoved": events.ModelVersionRemoved,
    "ActionOrdered": events.ActionOrdered,
    "ActionRefused": events.ActionRefused,
    "ServiceDeployed": events.ServiceDeployed,
    "ServiceLimitsSet": events.ServiceLimitsSet,
    "ServiceScaled": events.ServiceScaled,
    "ReplicaReady": events.ReplicaReady,
    "ReplicaUnready": events.ReplicaUnready,
    "ReplicaDrainStarted": events.ReplicaDrainStarted,
    "RolloutAdvanced": events.RolloutAdvanced,
    "ServicePromoted": events.ServicePromoted,
    "ServiceRolledBack": events.ServiceRolledBack,
    "ServiceRemoved": events.ServiceRemoved,
    "StartJob": actions.StartJob,
    "StopJob": actions.StopJob,
    "RefuseJob": actions.RefuseJob,
    "ResizeJob": actions.ResizeJob,
    "PromiseStart": actions.ReserveStart,
    "Cycle": Cycle,
    "End": BundleEnd,
    "steps": baseline.Steps,
    "transfers": baseline.Transfers,
    "kernels": baseline.Kernels,
    "acceptance": acceptance.Acceptance,
    "address": Address,
    "backfill": slurm_policy.Backfill,
    "baseline": baseline.Baseline,
    "baselines": BaselineStore,
    "bundle-header": BundleHeader,
    "bundle-settings": SimSettings,
    "compared": acceptance.FigureComparison,
    "crashes": failures.Crashes,
    "data-place": site_costs.DataPlace,
    "ended": job.EndedJob,
    "failure": failures.NodeFailure,
    "figure": acceptance.Figure,
    "govern": governance.GovernanceRules,
    "hours": terms.Hours,
    "job": job.Job,
    "kernel": baseline.Kernel,
    "mishap": failures.AttemptFailure,
    "node": node.Node,
    "node-test": acceptance.NodeTest,
    "node-verdict": acceptance.NodeVerdict,
    "order": job.Order,
    "past": job.PriorRuns,
    "policy": Policy,
    "priority-weights": slurm_policy.PriorityWeights,
    "promise": job.BackfillReservation,
    "reason": reason.Reason,
    "job-ref": reason.JobRef,
    "team-ref": reason.TeamRef,
    "user-ref": reason.UserRef,
    "node-ref": reason.NodeRef,
    "amount": reason.Amount,
    "text": reason.Text,
    "causes": reason.Causes,
    "run": job.Run,
    "saves": run_spec.CheckpointSpec,
    "shadow-difference": ShadowDifference,
    "shadow-entry": ShadowEntry,
    "shape": job.Shape,
    "site-costs": site_costs.SiteCosts,
    "site-route": site_costs.SiteRoute,
    "slot": job.Slot,
    "slurm-partition": slurm_policy.SlurmPartition,
    "slurm-policy": slurm_policy.SlurmPolicy,
    "snapshot": FleetImage,
    "stretch": PolicySpan,
    "submit-key": submission.SubmitKey,
    "team-terms": governance.TeamRules,
    "terms": terms.Terms,
    "transfer": baseline.Transfer,
    "where": constraints.PlacementConstraints,
    "window": terms.Window,
    "work": run_spec.RunSpec,
    "origin": origin.Origin,
    "code": origin.CodeState,
    "replica-ref": replica.ReplicaRef,
    "service": service_state.ServiceState,
    "replica": service_state.ReplicaState,
    "revision": service_state.RevisionState,
    "service-spec": service_spec.ServiceSpec,
    "readiness": service_spec.Readiness,
    "metric-target": service_spec.MetricTarget,
    "canary": service_spec.Canary,
    "hold": routing.Hold,
    "rollback": routing.Rollback,
    "overflow": routing.Overflow,
    "inference-limits": routing.InferenceLimits,
    "model-version": registry.ModelVersion,
    "artefact": registry.Artefact,
    "variant": registry.Variant,
    "lineage": registry.Lineage,
}

LINES: dict[str, type] = {
    "launch": wire.LaunchLine,
    "launch-member": wire.MemberLine,
    "launch-user": wire.UserLine,
    "stop": wire.StopLine,
    "started": wire.StartedLine,
    "record": wire.RecordLines,
    "line-reason": wire.ReasonLine,
    "end": wire.EndLine,
    "start-order": wire.StartOrder,
    "stop-order": wire.StopOrder,
    "node-order": wire.NodeOrder,
    "leave-order": wire.LeaveOrder,
    "note": wire.NoteLine,
}
"""What attempt folders hold and what spawner and supervisors say, as plain dictionaries."""

VALUES: dict[str, Sequence[str]] = {
    "state of a job": job.JOB_STATES,
    "state of a job that is over": job.ENDED,
    "state of a node": get_args(NodeState),
    "stage of a model version": registry.STAGES,
    "role of a token": [role.name for role in Role],
}
"""Words that stand in columns of their own."""


def listing() -> str:
    """Return the wire schema of every stored type as text: names, types and defaults, in order."""
    lines = [f"root {name}: {_hint(root)}" for name, root in ROOTS.items()]
    for name, kind in STRUCTS.items():
        config = kind.__struct_config__
        marks = [
            *([f"{config.tag_field}={config.tag}"] if config.tag_field else []),
            *(["omits defaults"] if config.omit_defaults else []),
            *([] if config.forbid_unknown_fields else ["takes unknown fields"]),
        ]
        lines += ["", f"{name} ({', '.join(marks)})" if marks else name]
        lines += [f"  {_field(field)}" for field in structs.fields(kind)]
    for name, kind in LINES.items():
        lines += ["", f"line {name}"]
        for key, hint in get_type_hints(kind).items():
            said = "" if key in kind.__required_keys__ else ", may be missing"
            lines.append(f"  {key}: {_hint(hint)}{said}")
    lines += ["", *(f"{name}: {' '.join(words)}" for name, words in VALUES.items())]
    return "\n".join(lines) + "\n"


def _field(field: structs.FieldInfo) -> str:
    told = f"{field.encode_name}: {_hint(field.type)}"
    if field.default is UNSET:
        return f"{told}, may be missing"
    if field.default is not NODEFAULT:
        return f"{told} = {json.encode(field.default).decode()}"
    if field.default_factory is not NODEFAULT:
        return f"{told} = {json.encode(field.default_factory()).decode()}"
    return told


def _hint(hint: Any) -> str:
    """Return a type by its wire name."""
    origin, parts = get_origin(hint), get_args(hint)
    if hasattr(hint, "__supertype__"):
        return _hint(hint.__supertype__)
    if hasattr(hint, "__metadata__"):
        return _hint(parts[0])
    if origin is Literal:
        return "one of " + " ".join(json.encode(part).decode() for part in parts)
    if origin in (Union, UnionType):
        return " | ".join(_hint(part) for part in parts if part is not UnsetType)
    if parts:
        return f"{origin.__name__}[{', '.join(_hint(part) for part in parts)}]"
    if hint is Ellipsis:
        return "..."
    if hint is NoneType:
        return "null"
    if is_typeddict(hint):
        return f"line {_NAMES[hint]}"
    return _NAMES.get(hint) or hint.__name__


_NAMES: dict[Any, str] = {kind: name for name, kind in (*STRUCTS.items(), *LINES.items())}
