"""Every type that is written to a disk, by the name that stands for it in the wire listing.

Python names may change: then this table is edited and the listing stays. Types that have a tag go
by it. What the roots lead to must be named here too; a test walks them.
"""

from msgspec import Struct

from tenfold.client.place import Address
from tenfold.engine.decision_log import Cycle
from tenfold.engine.shadow import ShadowDifference
from tenfold.engine.stretches import Stretch
from tenfold.files.baseline_store import BaselineStore
from tenfold.files.replay_bundle import BundleEnd, BundleHeader
from tenfold.files.shadow_log import ShadowEntry
from tenfold.fleet.image import FleetImage
from tenfold.live.local import wire
from tenfold.model import (
    acceptance,
    actions,
    baseline,
    events,
    govern,
    job,
    mishap,
    node,
    reason,
    slurm_policy,
    submission,
    terms,
    where,
    work,
)
from tenfold.model.policy import Policy
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
    "NodeTested": events.NodeTested,
    "NodeAccepted": events.NodeAccepted,
    "JobSubmitted": events.JobSubmitted,
    "JobRefused": events.JobRefused,
    "JobStarted": events.JobStarted,
    "JobStopped": events.JobStopped,
    "JobEnded": events.JobEnded,
    "JobCancelled": events.JobCancelled,
    "JobResized": events.JobResized,
    "JobIdled": events.JobIdled,
    "JobBusy": events.JobBusy,
    "ActionOrdered": events.ActionOrdered,
    "ActionRefused": events.ActionRefused,
    "StartJob": actions.StartJob,
    "StopJob": actions.StopJob,
    "RefuseJob": actions.RefuseJob,
    "ResizeJob": actions.ResizeJob,
    "PromiseStart": actions.PromiseStart,
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
    "compared": acceptance.Compared,
    "crashes": mishap.Crashes,
    "ended": job.Ended,
    "failure": mishap.Failure,
    "figure": acceptance.Figure,
    "govern": govern.Govern,
    "hours": terms.Hours,
    "job": job.Job,
    "kernel": baseline.Kernel,
    "mishap": mishap.Mishap,
    "node": node.Node,
    "node-test": acceptance.NodeTest,
    "node-verdict": acceptance.NodeVerdict,
    "order": job.Order,
    "past": job.Past,
    "policy": Policy,
    "priority-weights": slurm_policy.PriorityWeights,
    "promise": job.Promise,
    "reason": reason.Reason,
    "run": job.Run,
    "saves": work.Saves,
    "shadow-difference": ShadowDifference,
    "shadow-entry": ShadowEntry,
    "shape": job.Shape,
    "slot": job.Slot,
    "slurm-partition": slurm_policy.SlurmPartition,
    "slurm-policy": slurm_policy.SlurmPolicy,
    "snapshot": FleetImage,
    "stretch": Stretch,
    "submit-key": submission.SubmitKey,
    "team-terms": govern.TeamTerms,
    "terms": terms.Terms,
    "transfer": baseline.Transfer,
    "where": where.Where,
    "window": terms.Window,
    "work": work.Work,
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
