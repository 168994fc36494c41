"""Jobs and nodes as another scheduler recorded them, in the units that it uses."""

from msgspec import Struct


class RecordedJob(Struct, frozen=True, kw_only=True, gc=False):
    """One job, or one run of a job that was requeued. Times are seconds since 1970."""

    id: str
    """As users write it: `12`, or `12_3` for a member of an array."""
    number: int = 0
    """Slurm's own number, which every member of an array has."""
    user: str = ""
    account: str = ""
    partition: str = ""
    state: str = ""
    """One word in lower case: `pending`, `running`, `completed`, `failed`, `cancelled` ..."""
    name: str = ""
    submitted_s: float
    eligible_s: float | None = None
    """When nothing but the scheduler kept it from starting; None: never yet."""
    started_s: float | None = None
    ended_s: float | None = None
    limit_s: float | None = None
    nodes: int = 1
    node_names: tuple[str, ...] = ()
    """The nodes that it holds or held; empty if it never started, or if not recorded."""
    node_gpus: tuple[int, ...] = ()
    """GPUs on each of these nodes, where recorded."""
    gpus: float = 0.0
    """Allocated; requested if it never started."""
    gpus_asked: float = 0.0
    gpus_per_node_asked: int = 0
    gpu_types: tuple[str, ...] = ()
    cpus: float = 0.0
    memory_gib: float = 0.0
    """0 if the scheduler does not allocate memory."""
    memory_asked_gib: float = 0.0
    cpu_s: float | None = None
    """CPU time that its processes used, where recorded."""
    priority: int = 0
    nice: int = 0
    """What its user subtracted from its priority."""
    qos: str = ""
    exit_code: int | None = None
    cancelled_by: str = ""
    """The user who cancelled it, as recorded: a name or a number."""
    partitions: tuple[str, ...] = ()
    """Every partition that it may start in, while it is pending."""
    dependency: str = ""
    features: str = ""
    required_nodes: tuple[str, ...] = ()
    excluded_nodes: tuple[str, ...] = ()
    reservation: str = ""
    is_held: bool = False
    at_once_max: int = 0
    """How many members of its array may run at once; 0 is no limit."""
    exclusive: bool = False
    restarts: int = 0
    comment: str = ""
    reason: str = ""
    """The scheduler's own word for why it waits: for comparison, never for an answer."""

    @property
    def is_placed(self) -> bool:
        """Return whether it says which nodes it ran on."""
        return bool(self.node_names)


class RecordedNode(Struct, frozen=True, kw_only=True):
    """One node, with what is allocated on it now."""

    name: str
    gpu_type: str = ""
    gpus: int = 0
    gpus_used: int = 0
    cpus: int = 0
    cpus_used: int = 0
    memory_mib: int = 0
    memory_mib_used: int = 0
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    why_unusable: str = ""
    """Why no job can start on it: empty for a node in service."""
    is_lost: bool = False
    """Whether it does not respond, so that nothing runs there."""
