"""A Chromium and pages for it. Without Playwright nothing is collected: `make test-ui` has it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "build" / "ui"
PATIENCE = 60_000  # milliseconds, for a machine that has much else to do

if find_spec("playwright") is None:
    collect_ignore_glob = ["*"]
else:
    from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

    from tests.support.uiscene import crowd, hostile, scene


class Site:
    """A page that is served, with its objects in our hands."""

    def __init__(self, address: str, process: subprocess.Popen[str]) -> None:
        self.address = address
        self.base = address.partition("?")[0].rstrip("/")
        self._process = process

    def put(self, obj: dict) -> None:
        """Store an object as the API server returns it."""
        self._say({"put": obj})

    def remove(self, key: str) -> None:
        """Take an object away."""
        self._say({"remove": key})

    def log(self, line: str) -> None:
        """Write a line into every log."""
        self._say({"log": line})

    def _say(self, what: dict) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


@contextlib.contextmanager
def site(folder: Path, objects: list[dict], *options: str) -> Iterator[Site]:
    """Serve objects in memory."""
    file = folder / "objects.jsonl"
    file.write_text("".join(json.dumps({"put": one}) + "\n" for one in objects))
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.uiplane", str(file), *options],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://"), (folder / "log").read_text()
            yield Site(address, process)
        finally:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
    assert "Traceback" not in (folder / "log").read_text(), (folder / "log").read_text()


@pytest.fixture(scope="session")
def browser() -> Iterator["Browser"]:
    """Start the Chromium that HYPERJOB_CHROMIUM names."""
    executable = os.environ.get("HYPERJOB_CHROMIUM")
    if not executable:
        pytest.fail("name a Chromium in HYPERJOB_CHROMIUM: make test-ui does")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=executable)
        yield started
        started.close()


@pytest.fixture(scope="session")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve HyperJobs in every phase."""
    with site(tmp_path_factory.mktemp("fleet"), scene()) as served:
        yield served


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve 10,000 HyperJobs."""
    with site(tmp_path_factory.mktemp("many"), crowd(10_000)) as served:
        yield served


@pytest.fixture(scope="session")
def rude(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Serve HyperJobs with text that would like to be a program."""
    with site(tmp_path_factory.mktemp("rude"), hostile()) as served:
        yield served


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Site]:
    """Serve a page that visitors log in to."""
    with site(tmp_path, scene(), "--login") as served:
        yield served


class Watch:
    """What a page did that no page of ours may do."""

    def __init__(self, context: "BrowserContext") -> None:
        self.complaints: list[str] = []
        self.expected: list[str] = []
        context.on("console", self._said)  # a refusal that a test asks for is expected
        context.on("weberror", lambda error: self.complaints.append(f"error: {error.error}"))
        context.on("request", self._asked)

    def _said(self, message: object) -> None:
        if message.type in ("error", "warning"):  # a CSP violation is an error of the console
            self.complaints.append(f"console {message.type}: {message.text}")

    def _asked(self, request: object) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname not in (
            "127.0.0.1",
            "localhost",
        ):
            self.complaints.append(f"request to another host: {request.url}")

    def rest(self) -> list[str]:
        """Give what was not expected."""
        return [one for one in self.complaints if not any(each in one for each in self.expected)]


Open = Callable[..., "Page"]


@pytest.fixture
def watch() -> list[Watch]:
    """Give what was watched of the contexts of this test."""
    return []


@pytest.fixture
def open_page(browser: "Browser", watch: list[Watch]) -> Iterator[Open]:
    """Open a page of a site with its token, in a browser of its own; nothing may go wrong in it."""
    with contextlib.ExitStack() as stack:

        def opened(site: Site, path: str = "/", *, width: int = 1280, height: int = 900, **more):
            context = browser.new_context(viewport={"width": width, "height": height}, **more)
            stack.callback(context.close)
            context.set_default_timeout(PATIENCE)
            watch.append(Watch(context))
            page = context.new_page()
            page.goto(site.address)
            if path != "/":
                page.goto(site.base + path)
            return page

        yield opened
        assert [one for each in watch for one in each.rest()] == []


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Callable[["Page", str], None]:
    """Save a picture of a whole page in build/ui."""

    def save(page: "Page", name: str) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    return save
