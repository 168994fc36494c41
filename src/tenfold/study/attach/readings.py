"""Make a reading of what Slurm's commands printed, live or in saved files."""

from pathlib import Path

from msgspec.structs import replace

from tenfold.compose.fleet import accelerator_names
from tenfold.files.fleet.build import build
from tenfold.files.fleet.write import render_fleet_toml
from tenfold.files.inventory.inventory import FleetDraft, pools_from
from tenfold.files.slurm.accounting import read_accounting
from tenfold.files.slurm.conf import read_shown_policy, read_slurm_conf
from tenfold.files.slurm.node_use import read_node_use
from tenfold.files.slurm.nodes import read_slurm_nodes
from tenfold.files.slurm.queue import read_queue
from tenfold.files.slurm.saved import SavedOutput
from tenfold.files.slurm.settings import (
    SlurmSettings,
    read_bookings,
    read_limits,
    read_partitions,
    read_setting,
)
from tenfold.live.slurm.attach.poll import Printed
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.node import Node
from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.model.policy.policy import Policy
from tenfold.model.policy.slurm import SlurmPolicy
from tenfold.physics.nodes import nodes_of
from tenfold.study.attach.observe import Reading
from tenfold.study.attach.records import ClusterTerms

LIMITS_ENFORCED = ("limits", "safe", "all")
"""Values of `AccountingStorageEnforce` under which Slurm applies limits."""


class Readings:
    """Turns printed output into readings; what does not change is worked out once."""

    def __init__(self, catalogue: Catalogue, policy: Policy | None = None) -> None:
        """`policy` replaces the one that the cluster's configuration says."""
        self._catalogue = catalogue
        self._policy = policy
        self._key: tuple[object, ...] = ()
        self._joining: dict[str, Node] = {}
        self.draft: FleetDraft | None = None
        """The fleet as it would be imported."""

    def of(self, printed: Printed) -> Reading:
        """Return the reading of live output."""
        return self._reading(printed, settings_of(printed), printed.queue)

    def of_saved(self, saved: SavedOutput, folder: Path) -> Reading:
        """Return the one reading of saved files."""
        if not saved.nodes:
            raise InputError(
                "not-slurm-nodes",
                f"`{folder}` has no nodes",
                "save `scontrol show nodes` in the same folder",
                file=str(folder),
            )
        jobs = tuple(job for path in saved.accounting for job in read_accounting(path))
        queue = tuple(read_queue(saved.queue, str(folder))) if saved.queue else None
        if saved.conf is not None and self._policy is None:
            self._policy = Policy(name="slurm", slurm=read_slurm_conf(saved.conf))
        settings = SlurmSettings(
            partitions=read_partitions(saved.partitions), bookings=read_bookings(saved.bookings)
        )
        printed = Printed(
            now_s=_latest_s((*jobs, *(queue or ()))),
            nodes=saved.nodes,
            partitions=saved.partitions,
            queue=queue or (),
            config=saved.config,
            accounting=jobs,
        )
        found = self._reading(printed, settings, queue)
        return replace(found, is_last=True)

    def policy_of(self, config: str, partitions: str) -> Policy:
        """Return the policy of the cluster."""
        if self._policy is not None:
            return self._policy
        return Policy(name="slurm", slurm=_shown(config, partitions))

    def fleet_toml(self, source: str) -> str:
        """Return the fleet as a file for other commands."""
        assert self.draft is not None, "poll the cluster first"
        return render_fleet_toml(self.draft.rows, [f"Nodes of {source}.", *self.draft.notes])

    def _reading(
        self, printed: Printed, settings: SlurmSettings, queue: tuple[RecordedJob, ...] | None
    ) -> Reading:
        nodes, config = printed.nodes, printed.config
        known = tuple(read_node_use(nodes, "scontrol show nodes"))
        shown = _shown(config, printed.partitions)
        counts_memory = any("memory" in word for word in shown.select_parameters)
        self._describe(nodes, config, known, counts_memory=counts_memory)
        return Reading(
            now_s=printed.now_s,
            nodes=known,
            joining=self._joining,
            queue=queue,
            accounting=printed.accounting,
            settings=settings,
            terms=ClusterTerms(
                catalogue=self._catalogue,
                accelerators=accelerator_names(node.accelerator for node in self._joining.values()),
                counts_memory=counts_memory,
                has_priority=shown.priority == "basic",
            ),
        )

    def _describe(
        self, text: str, config: str, known: tuple[RecordedNode, ...], *, counts_memory: bool
    ) -> None:
        key = tuple(
            (one.name, one.gpu_type, one.gpus, one.cpus, one.memory_mib, one.features)
            for one in known
        )
        if key == self._key:
            return
        inventory = read_slurm_nodes(text, "scontrol show nodes")
        self.draft = pools_from(
            inventory,
            self._catalogue,
            name=read_setting(config, "ClusterName"),
            keep_unusable=True,
        )
        findings: list[Finding] = []
        spec = build(self.draft.rows, "cluster", self._catalogue, findings)
        if spec is None or findings:
            raise InvalidFile("scontrol show nodes", findings)
        facts = {one.name: one for one in known}
        self._joining = {
            node.id: _tracked(node, facts.get(node.id), counts_memory=counts_memory)
            for node in nodes_of(spec)
        }
        self._key = key


def settings_of(printed: Printed) -> SlurmSettings:
    """Return what decides beyond the queue; limits only where Slurm applies them."""
    enforced = read_setting(printed.config, "AccountingStorageEnforce").lower().split(",")
    limits = (
        read_limits(printed.qos, printed.accounts)
        if any(word in LIMITS_ENFORCED for word in enforced)
        else ()
    )
    return SlurmSettings(
        partitions=read_partitions(printed.partitions),
        bookings=read_bookings(printed.bookings),
        limits=limits,
    )


def _shown(config: str, partitions: str) -> SlurmPolicy:
    return (
        read_shown_policy(config, partitions, "scontrol show config") if config else SlurmPolicy()
    )


def _tracked(node: Node, known: RecordedNode | None, *, counts_memory: bool) -> Node:
    """Return a node with the amounts and features that Slurm has for it."""
    if known is None:
        return node
    return replace(
        node,
        cpus_milli=known.cpus * 1_000,
        memory_mib=known.memory_mib if counts_memory else 0,
        tags=tuple(dict.fromkeys((*node.tags, *known.features))),
    )


def _latest_s(jobs: tuple[RecordedJob, ...]) -> float:
    times = [one for job in jobs for one in (job.submitted_s, job.started_s, job.ended_s) if one]
    return max(times, default=0.0)
