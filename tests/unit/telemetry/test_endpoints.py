"""What probes, people and Prometheus read at the side door."""

import aiohttp
import pytest
from aiohttp import web

from hyperjob_core.telemetry.endpoints import Checks, ListenError, serve

ANY = "127.0.0.1:0"


@pytest.fixture
def healthz():
    return Checks("healthz")


@pytest.fixture
def readyz():
    return Checks("readyz")


@pytest.fixture
async def get(healthz, readyz):
    """Read a path; gives status and text."""
    checks = {"healthz": healthz, "readyz": readyz}
    async with (
        serve(health_address=ANY, metrics_address=ANY, **checks) as addresses,
        aiohttp.ClientSession() as session,
    ):

        async def read(path, method="GET", **options):
            url = f"http://{addresses.health}{path}"
            async with session.request(method, url, **options) as response:
                return response.status, await response.text()

        yield read


ALL_WELL = "[+]ping ok\n[+]certificate ok\nreadyz check passed\n"
NOT_WELL = "[+]ping ok\n[-]certificate failed: expired\nreadyz check failed\n"


@pytest.mark.parametrize(
    ("path", "reason", "expected"),
    [
        ("/readyz", None, (200, "ok")),
        ("/readyz?verbose", None, (200, ALL_WELL)),
        ("/readyz?verbose=true", None, (200, ALL_WELL)),
        ("/readyz", "expired", (500, NOT_WELL)),
        ("/readyz?verbose", "expired", (500, NOT_WELL)),
        ("/healthz", "expired", (200, "ok")),
        ("/livez?verbose", "expired", (200, "[+]ping ok\nhealthz check passed\n")),
    ],
)
async def test_probes_read_as_in_kubernetes(path, reason, expected, get, readyz):
    readyz.add("certificate", lambda: reason)
    assert await get(path) == expected


async def test_a_check_that_raises_has_failed(get, readyz):
    readyz.add("broken", lambda: {}["x"])
    status, text = await get("/readyz")
    assert status == 500
    assert "[-]broken failed: KeyError: 'x'" in text


async def test_metrics_are_served_in_the_form_that_is_asked_for(get):
    line = "# TYPE hyperjob_build_info gauge"
    assert line in (await get("/metrics"))[1]
    accepted = {"Accept": "application/openmetrics-text; version=1.0.0"}
    _, openmetrics = await get("/metrics", headers=accepted)
    assert openmetrics.endswith("# EOF\n")


async def test_two_addresses_are_two_listeners(healthz, readyz):
    checks = {"healthz": healthz, "readyz": readyz}
    async with (
        serve(health_address=ANY, metrics_address="localhost:0", **checks) as addresses,
        aiohttp.ClientSession() as session,
    ):
        assert addresses.health != addresses.metrics
        for address, path, status in (
            (addresses.health, "/healthz", 200),
            (addresses.health, "/metrics", 404),
            (addresses.metrics, "/metrics", 200),
            (addresses.metrics, "/healthz", 404),
        ):
            async with session.get(f"http://{address}{path}") as response:
                assert response.status == status


async def test_the_debug_pages_are_off_unless_they_get_an_address(healthz, readyz):
    async def page(request):
        return web.Response(text=f"about {request.match_info['name']}")

    checks = {"healthz": healthz, "readyz": readyz}
    options = {"metrics_address": "0", "debug": {"/debug/{name}": page}, **checks}
    async with (
        serve(health_address=ANY, debug_address="localhost:0", **options) as apart,
        serve(health_address=ANY, **options) as without,
        aiohttp.ClientSession() as session,
    ):
        assert without.debug is None
        for address, status in ((apart.debug, 200), (apart.health, 404), (without.health, 404)):
            async with session.get(f"http://{address}/debug/x") as response:
                assert response.status == status


@pytest.mark.parametrize("flag", ["health_address", "metrics_address", "debug_address"])
async def test_a_taken_address_is_an_error_that_names_the_flag(healthz, readyz, flag):
    others = {"health_address": "0", "metrics_address": "0"}
    options = {"healthz": healthz, "readyz": readyz}
    async with serve(health_address=ANY, metrics_address="0", **options) as addresses:
        with pytest.raises(ListenError) as refused:
            async with serve(**others | {flag: addresses.health}, **options):
                pass
    option = f"--{'health-probe' if flag == 'health_address' else flag.split('_')[0]}-bind-address"
    assert str(refused.value) == (
        f"cannot listen on {addresses.health}: address already in use; choose another address"
        f" with {option}"
    )
