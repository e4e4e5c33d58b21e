"""The metrics of the page: requests and logins.

No label has a name that a visitor chooses.
"""

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import Counter

import hyperjob_core.kube.metrics  # noqa: F401 - the requests to the API server
from hyperjob_core.registry import REGISTRY

_REQUESTS: Final = Counter(
    "hyperjob_page_requests",
    "Requests of visitors by page and HTTP status; closed: the visitor left before the answer",
    ("page", "code"),
    registry=REGISTRY,
)
LOGINS: Final = Counter(
    "hyperjob_page_logins",
    "Tokens in the login form that the API server has accepted or refused",
    ("result",),
    registry=REGISTRY,
)
for _result in ("accepted", "refused"):
    LOGINS.labels(_result)


@web.middleware
async def counted(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Count a request when its answer has ended."""
    resource, code = request.match_info.route.resource, "closed"
    try:
        response = await handler(request)
        code = str(response.status)
    except web.HTTPException as error:
        code = str(error.status)
        raise
    finally:
        _REQUESTS.labels("none" if resource is None else resource.canonical, code).inc()
    return response
