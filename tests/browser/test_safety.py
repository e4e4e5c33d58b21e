"""What other people write is text, and what other sites send is refused, in a real browser."""

import pytest
from playwright.sync_api import expect

from tests.support.uiscene import HOSTILE

ONE = "/hyperjobs/team-a/hostile-"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/hyperjobs",
        "/queues",
        *(f"{ONE}{number}" for number in (0, 4, 7)),
        f"{ONE}0/yaml",
        f"{ONE}0/why",
        f"{ONE}0/metrics",
        f"{ONE}0/logs",
        f"{ONE}0/delete",
    ],
)
def test_hostile_text_is_shown_and_never_run(rude, open_page, picture, path):
    page = open_page(rude, path)
    expect(page.locator("h1").first).to_be_visible()
    if path in ("/hyperjobs", ONE + "0"):
        picture(page, f"hostile-{path.strip('/').replace('/', '-')}")
    assert page.evaluate("window.pwned") is None
    assert page.locator("main script, main img, main svg[onload]").count() == 0
    text = page.locator("body").inner_text()
    assert not any(sign in text for sign in "\x1b\x07\u202e\u2066")
    if path == "/hyperjobs":
        assert HOSTILE[0] in text
        assert "49" not in text, "a template was filled in twice"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280, "it scrolls sideways"


LOOK = 20_000
"""Milliseconds: a page that follows logs asks for them every five seconds."""


def test_following_logs_shows_text_as_it_comes(rude, open_page, picture):
    page = open_page(rude, f"{ONE}0/logs")
    log = page.locator("#log")
    expect(log).to_contain_text("step 2 of 100")
    follow = page.get_by_role("button", name="Follow")
    follow.click()
    expect(log).to_contain_text("step 2 of 100")
    rude.log("\x1b[31mred\x1b[0m <script>window.pwned=1</script> \u202eexe.txt")
    expect(log).to_contain_text("red <script>window.pwned=1</script> \\u202eexe.txt", timeout=LOOK)
    rude.log("long " + "x" * 1_000_000)
    expect(log).to_contain_text("long xxx", timeout=LOOK)
    assert page.evaluate("document.getElementById('log').textContent.length") < 50_000
    picture(page, "logs-followed")
    page.get_by_role("button", name="Stop").click()
    rude.log("after the stop")
    expect(page.get_by_role("button", name="Follow")).to_be_visible()
    page.reload()
    expect(log).to_contain_text("after the stop")
    assert page.evaluate("window.pwned") is None


def test_a_session_is_good_under_its_own_host_name_alone(fleet, open_page, watch):
    page = open_page(fleet)
    watch[0].expected.append("status of 403")
    other = fleet.base.replace("127.0.0.1", "localhost")  # another site to a browser's cookies
    answer = page.request.post(f"{fleet.base}/hyperjobs", form={"csrf": "0" * 64})
    assert answer.status in (403, 404, 405)
    stranger = page.context.new_page()
    refused = stranger.goto(f"{other}/hyperjobs")
    assert refused.status == 403


def test_a_browser_without_the_token_is_told_where_it_is(fleet, browser):
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(fleet.base)
    assert answer.status == 403
    expect(page.locator("main")).to_contain_text("hyperjob ui")
    context.close()
