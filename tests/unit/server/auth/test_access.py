"""Who may ask for what: every route with every role, and with tokens that are none."""

from collections.abc import Callable

import pytest
from litestar import Litestar, get
from litestar.testing import TestClient

from tenfold.server.app import make_app
from tenfold.server.auth.access import PUBLIC, RouteWithoutRole, requires_role, routes_of
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime

Client = TestClient[Litestar]
OPEN = {"/healthz", "/readyz"}
STREAMS = "/api/v1/events"
SERVED = {
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/fleet"),
    ("GET", "/api/v1/fleet/idle"),
    ("GET", "/api/v1/control-planes"),
    ("GET", "/api/v1/whoami"),
    ("GET", "/api/v1/jobs"),
    ("POST", "/api/v1/jobs"),
    ("POST", "/api/v1/jobs/dry-run"),
    ("GET", "/api/v1/jobs/{job_id:str}"),
    ("DELETE", "/api/v1/jobs/{job_id:str}"),
    ("GET", "/api/v1/jobs/{job_id:str}/logs"),
    ("GET", "/api/v1/jobs/{job_id:str}/why"),
    ("POST", "/api/v1/jobs/{job_id:str}/release"),
    ("POST", "/api/v1/jobs/{job_id:str}/rerun"),
    ("POST", "/api/v1/jobs/{job_id:str}/shells"),
    ("GET", "/api/v1/jobs/{job_id:str}/shells/{shell_id:str}"),
    ("POST", "/api/v1/jobs/{job_id:str}/shells/{shell_id:str}"),
    ("GET", "/api/v1/nodes"),
    ("POST", "/api/v1/nodes/join"),
    ("POST", "/api/v1/nodes/leave"),
    ("POST", "/api/v1/nodes"),
    ("POST", "/api/v1/nodes/{node_id:str}/cordon"),
    ("POST", "/api/v1/nodes/{node_id:str}/uncordon"),
    ("POST", "/api/v1/nodes/{node_id:str}/fail"),
    ("POST", "/api/v1/nodes/{node_id:str}/test"),
    ("POST", "/api/v1/nodes/{node_id:str}/accept"),
    ("GET", "/api/v1/services"),
    ("POST", "/api/v1/services"),
    ("GET", "/api/v1/services/{name:str}"),
    ("DELETE", "/api/v1/services/{name:str}"),
    ("POST", "/api/v1/services/{name:str}/scale"),
    ("POST", "/api/v1/services/{name:str}/canary"),
    ("POST", "/api/v1/services/{name:str}/promote"),
    ("POST", "/api/v1/services/{name:str}/rollback"),
    ("GET", "/api/v1/routing"),
    ("GET", "/api/v1/tokens"),
    ("POST", "/api/v1/tokens"),
    ("DELETE", "/api/v1/tokens/{token_id:str}"),
    ("GET", "/api/v1/models"),
    ("GET", "/api/v1/objects"),
    ("GET", "/api/v1/objects/keys"),
    ("POST", "/api/v1/objects/keys"),
    ("DELETE", "/api/v1/objects/keys/{key_id:str}"),
    ("POST", "/api/v1/objects/quotas/{team:str}"),
    ("GET", "/api/v1/models/{model:str}"),
    ("POST", "/api/v1/models/{model:str}/versions"),
    ("GET", "/api/v1/models/{model:str}/versions/{version:str}"),
    ("DELETE", "/api/v1/models/{model:str}/versions/{version:str}"),
    ("POST", "/api/v1/models/{model:str}/aliases"),
    ("POST", "/api/v1/models/{model:str}/stages"),
    ("GET", "/api/v1/schema"),
    ("GET", "/api/v1/schema/openapi.json"),
    ("GET", "/api/v1/schema/{path:str}"),
}
"""What is served, and nothing else: a new route is added here with a thought."""


def asked(client: Client, method: str, path: str, secret: str | None) -> int:
    names = ("job_id", "node_id", "token_id", "name", "model", "version", "path")
    for name in names:
        path = path.replace(f"{{{name}:str}}", "nobody")
    headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
    query = {"follow": "false"} if path == STREAMS else {}
    return client.request(method, path, params=query, headers=headers).status_code


def table(app: Litestar) -> list[tuple[str, str, object]]:
    return [
        (method, path, role)
        for path, methods, role in routes_of(app)
        for method in methods
        if method not in ("OPTIONS", "HEAD")
    ]


def test_what_is_served_is_what_is_listed(app: Litestar):
    assert {(method, path) for method, path, _ in table(app)} == SERVED


def test_every_route_lets_in_its_role_and_those_above_alone(
    app: Litestar, client: Client, token: Callable[..., str]
):
    tokens = {role: token(role.name) for role in Role}
    for method, path, least in table(app):
        for role, secret in tokens.items():
            status = asked(client, method, path, secret)
            if least == PUBLIC or (isinstance(least, Role) and role >= least):
                assert status not in (401, 403, 405, 500), (method, path, role)
            else:
                assert status == 403, (method, path, role)


def test_no_route_answers_without_a_good_token(
    app: Litestar, client: Client, token: Callable[..., str], runtime: Runtime
):
    revoked, expired = token("admin"), token("admin", days=-1)
    (record, *_) = [one for one in runtime.control.tokens.all() if one.name == "admin-of-red"]
    runtime.control.tokens.revoke(record.id)
    good = token("admin")
    bad = [None, "", revoked, expired, "tf_", "tf_" + "x" * 43, good[:-1], good.upper(), "x" * 999]
    for method, path, _ in table(app):
        for secret in bad:
            status = asked(client, method, path, secret)
            assert (status == 401) == (path not in OPEN), (method, path, secret)


def test_a_method_that_nobody_declared_is_refused_with_and_without_a_token(
    client: Client, token: Callable[..., str]
):
    admin = {"Authorization": f"Bearer {token('admin')}"}
    assert client.options("/api/v1/jobs").status_code == 401
    assert client.options("/api/v1/jobs", headers=admin).status_code == 405
    assert client.put("/api/v1/jobs", headers=admin).status_code == 405


def test_the_header_must_be_a_bearer_token(client: Client, token: Callable[..., str]):
    secret = token("viewer")
    for header in (secret, f"Basic {secret}", f"Bearer{secret}", "Bearer"):
        answer = client.get("/api/v1/whoami", headers={"Authorization": header})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert client.get("/api/v1/whoami", params={"token": secret}).status_code == 401


def test_a_route_that_names_no_role_cannot_be_built(runtime: Runtime):
    @get("/api/v1/free-for-all")
    async def free() -> str:
        return "all"

    with pytest.raises(RouteWithoutRole, match="free-for-all"):
        make_app(runtime.control, (free,))

    @get("/api/v1/guarded", opt=requires_role(Role.admin))
    async def guarded() -> str:
        return "all"

    with TestClient(make_app(runtime.control, (guarded,))) as client:
        assert client.get("/api/v1/guarded").status_code == 401
