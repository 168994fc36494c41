"""The control planes that share a journal, and which one leads."""

from litestar import Router, get
from msgspec import UNSET

from tenfold.journal.leadership.control_planes import ControlPlaneRow, Shared, shared_by
from tenfold.model.api.fleet import ControlPlane, ControlPlanes
from tenfold.model.units import SECOND
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.deps import ControlDep

GONE_LEASES = 5
"""A control plane that was not seen for so many leases is shown as gone."""


@get(
    "/control-planes",
    opt=requires_role(Role.viewer),
    sync_to_thread=True,
    operation_id="listControlPlanes",
)
def list_control_planes(request: AuthedRequest, control: ControlDep) -> ControlPlanes:
    """List the control planes that share the journal; none if it is not shared."""
    lead = control.leadership
    if lead is None:
        return ControlPlanes(control_planes=())
    shared, gone_ms = shared_by(control.store), GONE_LEASES * lead.lease_ms
    return ControlPlanes(
        control_planes=tuple(_shown(one, shared, gone_ms) for one in shared.rows),
        epoch=UNSET if shared.lease is None else shared.lease.epoch,
        lease_s=lead.lease_ms / SECOND,
    )


def _shown(row: ControlPlaneRow, shared: Shared, gone_ms: int) -> ControlPlane:
    ago_ms, lease = max(0, shared.now_ms - row.seen_ms), shared.lease
    is_leader = lease is not None and lease.control_plane == row.id and lease.left_ms > 0
    role = "leader" if is_leader else "gone" if ago_ms > gone_ms else "standby"
    return ControlPlane(
        name=row.name,
        url=row.url,
        role=role,
        host=row.holder,
        version=row.version,
        seen_s=round(ago_ms / SECOND, 1),
    )


ROUTES = Router("/api/v1", route_handlers=[list_control_planes])
