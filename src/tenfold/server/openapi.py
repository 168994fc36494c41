"""The OpenAPI description: what the routes declare, plus the request bodies.

Bodies are parsed by the code that reads job files, which reports all errors at once. The framework
does not know them, so their schemas are added here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from litestar import Request, Router
from litestar.enums import MediaType
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import OpenAPIRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from tenfold import __version__
from tenfold.model.api.models import AliasChange, NewVersion, StageChange
from tenfold.model.api.nodes import JoinRequest, NodeActionRequest
from tenfold.model.api.objects import CreateAccessKey, StorageQuota
from tenfold.model.api.problems import ProblemBody
from tenfold.model.api.services import ScaleService, WeighCanary
from tenfold.model.api.shells import OpenShell, ShellInput
from tenfold.model.api.tokens import CreateToken
from tenfold.model.job.spec import JobSpec
from tenfold.model.service.spec import ServiceSpec
from tenfold.server.auth.access import requires_role
from tenfold.server.auth.tokens import Role
from tenfold.server.problems import MEDIA_TYPE
from tenfold.server.submissions import BATCH_MAX

Schema = dict[str, Any]
FOLDER = "/api/v1/schema"
_REF = "#/components/schemas/{name}"
_BODIES: Mapping[str, type] = {
    "/api/v1/nodes": NodeActionRequest,
    "/api/v1/nodes/join": JoinRequest,
    "/api/v1/tokens": CreateToken,
    "/api/v1/objects/keys": CreateAccessKey,
    "/api/v1/objects/quotas/{team}": StorageQuota,
    "/api/v1/jobs/{job_id}/shells": OpenShell,
    "/api/v1/jobs/{job_id}/shells/{shell_id}": ShellInput,
    "/api/v1/models/{model}/versions": NewVersion,
    "/api/v1/models/{model}/aliases": AliasChange,
    "/api/v1/models/{model}/stages": StageChange,
}
"""What POST requests to a path carry, besides jobs."""
_METHODS = ("get", "post", "put", "patch", "delete")


class _Json(OpenAPIRenderPlugin):
    """Serves the description as JSON; there is no HTML page that loads third-party scripts."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """Return the description."""
        return msgspec.json.encode(described(openapi_schema))


def config() -> OpenAPIConfig:
    """Return the OpenAPI settings of the framework."""
    bearer = SecurityScheme(type="http", scheme="bearer", description="A token, `tf_...`.")
    router = Router(
        FOLDER, route_handlers=[], opt=requires_role(Role.viewer), include_in_schema=False
    )
    plugins: Sequence[OpenAPIRenderPlugin] = [
        _Json(path="/openapi.json", media_type=MediaType.JSON)
    ]
    return OpenAPIConfig(
        title="Tenfold",
        version=__version__,
        description="The Tenfold control plane: jobs, nodes, fleet, models, objects and tokens.",
        components=Components(security_schemes={"token": bearer}),
        security=[{"token": []}],
        openapi_router=router,
        render_plugins=plugins,
        use_handler_docstrings=True,
    )


def described(schema: Schema) -> Schema:
    """Return a description with request bodies and the error format added."""
    kinds = (JobSpec, ProblemBody, *_BODIES.values())
    (job, problem, *bodies), parts = msgspec.json.schema_components(kinds, ref_template=_REF)
    batch = {
        "type": "object",
        "required": ["jobs"],
        "additionalProperties": False,
        "properties": {
            "jobs": {"type": "array", "minItems": 1, "maxItems": BATCH_MAX, "items": job}
        },
    }
    components = cast("Schema", schema.get("components", {}))
    schemas = {**cast("Schema", components.get("schemas", {})), **parts}
    paths = {
        path: {
            name: _with_problem(part, problem) if name in _METHODS else part
            for name, part in cast("Schema", item).items()
        }
        for path, item in cast("Schema", schema["paths"]).items()
    }
    paths["/api/v1/jobs"]["post"]["requestBody"] = _body({"oneOf": [job, batch]})
    paths["/api/v1/jobs/dry-run"]["post"]["requestBody"] = _body(job)
    for path, body in zip(_BODIES, bodies, strict=True):
        paths[path]["post"]["requestBody"] = _body(body)
    services, service_parts = _of_services()
    schemas |= service_parts
    for path, body in services.items():
        paths[path]["post"]["requestBody"] = _body(body)
    return {**schema, "paths": paths, "components": {**components, "schemas": schemas}}


def _of_services() -> tuple[dict[str, Schema], Schema]:
    """Return the bodies of the requests about services by path, and the types that they use."""
    (service, limits, weight), parts = msgspec.json.schema_components(
        (ServiceSpec, ScaleService, WeighCanary), ref_template=_REF
    )
    bodies: dict[str, Schema] = {
        "/api/v1/services": service,
        "/api/v1/services/{name}/scale": limits,
        "/api/v1/services/{name}/canary": weight,
    }
    plain: tuple[dict[str, Schema], Schema] = msgspec.to_builtins((bodies, parts))
    return plain[0], plain[1]


def _with_problem(operation: Schema, problem: Schema) -> Schema:
    """Return an operation whose only error responses are problems."""
    responses = {
        status: answer
        for status, answer in cast("Schema", operation["responses"]).items()
        if not status.startswith(("4", "5"))
    }
    content = {MEDIA_TYPE: {"schema": problem}}
    responses["default"] = {
        "description": "The error: a stable code, the cause and a hint.",
        "content": content,
    }
    return {**operation, "responses": responses}


def _body(schema: Schema) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": schema}}}
