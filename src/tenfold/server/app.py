"""The application: all routes, one guard, one error format."""

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from tenfold.server.auth.access import check_routes, make_guard
from tenfold.server.metrics.metrics import metrics_routes
from tenfold.server.openapi import config
from tenfold.server.problems import HANDLERS, HEADERS
from tenfold.server.requests import RequestLog
from tenfold.server.routes import control_planes as routes_control_planes
from tenfold.server.routes import dry_run as routes_dry_run
from tenfold.server.routes import events as routes_events
from tenfold.server.routes import fleet as routes_fleet
from tenfold.server.routes import jobs as routes_jobs
from tenfold.server.routes import joining as routes_joining
from tenfold.server.routes import logs as routes_logs
from tenfold.server.routes import models as routes_models
from tenfold.server.routes import nodes as routes_nodes
from tenfold.server.routes import objects as routes_objects
from tenfold.server.routes import rerun as routes_rerun
from tenfold.server.routes import services as routes_services
from tenfold.server.routes import shells as routes_shells
from tenfold.server.routes import tokens as routes_tokens
from tenfold.server.routes import why as routes_why
from tenfold.server.runtime import health
from tenfold.server.runtime.admission import BODY_BYTES_MAX, Admission
from tenfold.server.runtime.deps import Control
from tenfold.server.runtime.leadership import not_leader


def make_app(control: Control, more: tuple[ControllerRouterHandler, ...] = ()) -> Litestar:
    """Return the application for a control plane; raise if a route has no role.

    `more` adds routes, which are guarded like all others.
    """
    routes: list[Router] = [
        routes_jobs.ROUTES,
        routes_dry_run.ROUTES,
        routes_rerun.ROUTES,
        routes_why.ROUTES,
        routes_logs.ROUTES,
        routes_shells.ROUTES,
        routes_services.ROUTES,
        routes_nodes.ROUTES,
        routes_joining.ROUTES,
        routes_fleet.ROUTES,
        routes_control_planes.ROUTES,
        routes_tokens.ROUTES,
        routes_models.ROUTES,
        routes_objects.ROUTES,
        routes_events.ROUTES,
        health.ROUTES,
        metrics_routes(control.meters),
    ]
    app = Litestar(
        route_handlers=[*routes, *more],
        guards=[make_guard(control.tokens, lambda: not_leader(control.leadership))],
        middleware=[
            RequestLog(control.meters, control.traces),
            Admission(control.budgets, control.tokens),
        ],
        dependencies={"control": Provide(lambda: control, sync_to_thread=False)},
        exception_handlers=HANDLERS,
        openapi_config=config(),
        request_max_body_size=BODY_BYTES_MAX,
        response_headers=HEADERS,
        logging_config=None,
        debug=False,
    )
    check_routes(app)
    return app
