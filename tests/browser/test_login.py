"""Visitors of a cluster's page log in, in a real browser with its own rules for cookies."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect


def log_in(page, token):
    page.get_by_label("Bearer token").fill(token)
    page.get_by_role("button", name="Log in").click()


def test_a_visitor_logs_in_comes_back_by_a_link_and_logs_out(guarded, open_page, watch, picture):
    page = open_page(guarded, "/hyperjobs?phase=Running")
    expect(page).to_have_title("Log in · HyperJob")
    picture(page, "login")
    assert Axe().run(page).response["violations"] == []
    watch[0].expected.append("status of 403")
    log_in(page, "bad")
    expect(page.get_by_role("alert")).to_contain_text("does not accept this token")
    log_in(page, "good")
    expect(page.get_by_role("link", name="llm-pretrain").first).to_be_visible()
    assert page.url.endswith("/hyperjobs?phase=Running")
    expect(page.locator(".user")).to_have_text("ann@example.org")
    assert page.evaluate("document.cookie") == ""
    (cookie,) = [one for one in page.context.cookies() if one["name"] == "__Host-hyperjob-ui"]
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")

    # A page of another site leads here: the first request carries no cookie, and the session lasts.
    other = page.context.new_page()
    elsewhere = guarded.base.replace("127.0.0.1", "localhost")
    other.goto(f"{elsewhere}/login")
    other.evaluate(f"location.href = '{guarded.base}/queues'")
    expect(other.locator("h1")).to_have_text("Queues")
    other.close()

    page.get_by_role("button", name="Log out").click()
    expect(page).to_have_title("Log in · HyperJob")
    page.goto(guarded.base + "/hyperjobs")
    expect(page).to_have_title("Log in · HyperJob")
