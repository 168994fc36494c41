"""The application: every route, one guard, one way to tell errors."""

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.types import ControllerRouterHandler

from tenfold.server import (
    health,
    routes_dry_run,
    routes_events,
    routes_fleet,
    routes_jobs,
    routes_logs,
    routes_nodes,
    routes_tokens,
    routes_why,
)
from tenfold.server.access import check_routes, guard_with
from tenfold.server.control import Control
from tenfold.server.metrics import metrics_routes
from tenfold.server.openapi import config
from tenfold.server.problems import HANDLERS
from tenfold.server.requests import RequestLog

BODY_BYTES_MOST = 4 << 20
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


def make_app(control: Control, more: tuple[ControllerRouterHandler, ...] = ()) -> Litestar:
    """Return the application over a control plane; raise where a route has no role.

    `more` adds routes, which are guarded like all others.
    """
    routes: list[Router] = [
        routes_jobs.ROUTES,
        routes_dry_run.ROUTES,
        routes_why.ROUTES,
        routes_logs.ROUTES,
        routes_nodes.ROUTES,
        routes_fleet.ROUTES,
        routes_tokens.ROUTES,
        routes_events.ROUTES,
        health.ROUTES,
        metrics_routes(control.meters),
    ]
    app = Litestar(
        route_handlers=[*routes, *more],
        guards=[guard_with(control.tokens)],
        middleware=[RequestLog(control.meters, control.traces)],
        dependencies={"control": Provide(lambda: control, sync_to_thread=False)},
        exception_handlers=HANDLERS,
        openapi_config=config(),
        request_max_body_size=BODY_BYTES_MOST,
        response_headers=HEADERS,
        logging_config=None,
        debug=False,
    )
    check_routes(app)
    return app
