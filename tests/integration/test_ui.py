"""The web page over HTTP, against an API server and a member behind it."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from html.parser import HTMLParser

import pytest
import pytest_asyncio

from hyperjob_core.kube.resources import HYPERJOBS
from tests.support.cliworld import NAMESPACE, CliWorld, hyperjob, status
from tests.support.uiworld import Ui, open_ui

pytestmark = [pytest.mark.scenario, pytest.mark.asyncio(loop_scope="module")]

ONE = f"/hyperjobs/{NAMESPACE}/llm"
PAGES = (
    "/",
    "/hyperjobs",
    "/hyperjobs?phase=Running&sort=name&desc=1&col=restarts",
    "/queues",
    ONE,
    f"{ONE}/why",
    f"{ONE}/events",
    f"{ONE}/metrics?rank=0&axis=time",
    f"{ONE}/logs",
    f"{ONE}/yaml",
    f"{ONE}/plan",
    f"{ONE}/suspend",
    f"{ONE}/restart",
    f"{ONE}/migrate",
    f"{ONE}/delete",
    "/nowhere",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ui(world: CliWorld) -> AsyncIterator[Ui]:
    async with AsyncExitStack() as stack:
        yield await open_ui(stack, world.kube)


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_is_whole_and_lets_browsers_load_nothing_else(ui: Ui, path: str) -> None:
    page = await ui.get(path)
    assert page.status == (404 if path == "/nowhere" else 200)
    assert page.html.rstrip().endswith("</html>")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["Cache-Control"] == "no-store"
    # Nothing inline, nothing from elsewhere.
    assert not inline(page.html)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page.html)
    assert not re.search(r"\b[A-Z]\w+\([a-z_]+=", page.text), "an object of Python in its own form"


def inline(html: str) -> list[str]:
    """Name what a page has of inline styles, scripts and handlers; text that looks so is none."""
    found: list[str] = []

    class Finder(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(name for name, _ in attrs if name == "style" or name.startswith("on"))
            source = dict(attrs).get("src") or ""
            if tag == "style" or (tag == "script" and not source.startswith("/static/")):
                found.append(tag)

    Finder().feed(html)
    return found


async def test_logs_are_searched(ui: Ui) -> None:
    shown = (await ui.get(f"{ONE}/logs?tail=1000")).text
    assert "east/llm-trainer-0-worker-0" in shown
    assert "No line yet." not in shown
    assert "No line yet." in (await ui.get(f"{ONE}/logs?search=in-no-line")).text


async def test_a_change_reaches_a_viewer(ui: Ui, world: CliWorld) -> None:
    await world.make(HYPERJOBS, hyperjob("moving"), status("moving", "Pending", {}, {}))
    await ui.until("/hyperjobs?q=moving", "Pending 1")
    await world.set_status(HYPERJOBS, "moving", status("moving", "Degraded", {}, {}))
    await ui.until("/hyperjobs?q=moving", "Degraded 1")
    await world.kube.delete(HYPERJOBS, "moving", namespace=NAMESPACE)
    await ui.until("/hyperjobs?q=moving", "No HyperJobs match")


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><b>bold</b> {{7*7777}}"
    " \x1b[31mred\x1b]0;title\x07 \u202egnp.exe\u2066 "
)


async def test_hostile_text_is_shown_as_text(ui: Ui, world: CliWorld) -> None:
    body = hyperjob("hostile")
    body["metadata"]["annotations"] = {"note": HOSTILE}
    told = status(
        "hostile",
        "Failed",
        {"cluster": "east", "phase": "Failed", "message": HOSTILE, "reason": "<i>x</i>"},
        message=HOSTILE + "m" * 1_000,
    )
    told["jobs"][0]["failure"] = {"pod": "<u>p</u>", "exitCode": 1, "message": HOSTILE}
    await world.make(HYPERJOBS, body, told)
    path = f"/hyperjobs/{NAMESPACE}/hostile"
    await ui.until(path, "Failed")
    paths = ("/hyperjobs", path, f"{path}/why", f"{path}/yaml", "/")
    for each in paths:
        page = await ui.get(each)
        assert page.status == 200
        for bad in ("<script>alert", "<img", "<b>bold", "<i>x", "<u>p", "54439"):
            assert bad not in page.html, (each, bad)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page.html)
    shown = (await ui.get(path)).text
    assert "<script>alert(1)</script>" in shown
    assert "\\u202egnp.exe" in shown


async def test_an_address_with_anything_in_it_is_answered(ui: Ui) -> None:
    for query in (
        "q=%00%1b%3Cscript%3E",
        "page=99999999",
        "label=%3D%3D",
        "sort=../..",
        "q=" + "a" * 5000,
    ):
        page = await ui.get(f"/hyperjobs?{query}")
        assert page.status == 200
        assert "<script>" not in page.html.replace('<script src="/static/', "")
    for path in ("/static/../app.py", "/static/nothing.js", "/hyperjobs/a/b/c/d"):
        assert (await ui.get(path)).status == 404
