"""Connections of both clients: the only module that brings in the HTTP library.

A control plane on this machine is asked directly, whatever proxy the environment names.
"""

import ssl
from typing import Any

import httpx

from tenfold.client.place import Place

CONNECT_S = 5.0


def connection(place: Place, timeout_s: float) -> httpx.Client:
    """Return a connection for the plain client."""
    return httpx.Client(**_options(place, timeout_s))


def async_connection(place: Place, timeout_s: float) -> httpx.AsyncClient:
    """Return a connection for the async client."""
    return httpx.AsyncClient(**_options(place, timeout_s))


def _options(place: Place, timeout_s: float) -> dict[str, Any]:
    # The system's certificates, or those that SSL_CERT_FILE names: the way to trust one's own.
    trusted = ssl.create_default_context() if place.is_encrypted else False
    return {
        "timeout": httpx.Timeout(timeout_s, connect=CONNECT_S),
        "trust_env": not place.is_near,
        "verify": trusted,
        "follow_redirects": False,
    }
