"""What changes at the API server changes on the screen, with 10,000 HyperJobs too."""

import re
import time

from playwright.sync_api import expect

from tests.support.uiscene import hyperjob


def test_a_new_hyperjob_appears_by_itself_and_goes(fleet, open_page, record_property):
    page = open_page(fleet, "/hyperjobs")
    expect(page.get_by_role("link", name="llm-pretrain").first).to_be_visible()
    begin = time.monotonic()
    fleet.put(hyperjob("newcomer", uid="new-1"))
    expect(page.get_by_role("link", name="newcomer").first).to_be_visible()
    seconds = time.monotonic() - begin
    record_property("seconds until on screen", seconds)
    print(f"on screen after {seconds:.2f} s")
    fleet.remove("hyperjobs/team-a/newcomer")
    expect(page.get_by_role("link", name="newcomer")).to_have_count(0)


def test_a_progress_line_comes_into_the_curves(fleet, open_page):
    page = open_page(fleet)
    page.clock.install()
    page.goto(f"{fleet.base}/hyperjobs/team-a/llm-pretrain/metrics")
    last = page.get_by_role("img", name=re.compile("^loss, from")).locator("b").first
    expect(last).to_be_visible()
    expect(last).not_to_have_text("0.125")
    fleet.log('{"hyperjob": {"step": 4300, "metrics": {"loss": 0.125}}}')
    page.clock.fast_forward(16_000)
    expect(last).to_have_text("0.125")


def test_the_phase_of_a_hyperjob_changes_on_the_screen(fleet, open_page):
    fleet.put(hyperjob("turning", "Running"))
    page = open_page(fleet, "/hyperjobs")
    row = page.locator("tr", has_text="turning").first
    expect(row).to_contain_text("Running")
    fleet.put(hyperjob("turning", "Failed", reason="JobFailed", since=0))
    expect(row).to_contain_text("Failed")
    fleet.remove("hyperjobs/team-a/turning")


def test_ten_thousand_hyperjobs_are_shown_and_stay_live(many, open_page, picture):
    page = open_page(many, "/hyperjobs")
    expect(page.locator("main")).to_contain_text("of 10000")
    picture(page, "hyperjobs-ten-thousand")
    assert page.locator("tr").count() < 500, "a page has an end"
    begin = time.monotonic()
    many.put(hyperjob("aaa-first", "Failed", namespace="team-0", queue="q0", clusters=("c1",)))
    expect(page.locator("main")).to_contain_text("of 10001")
    print(f"10,000 HyperJobs: on screen after {time.monotonic() - begin:.2f} s")
    many.remove("hyperjobs/team-0/aaa-first")
    expect(page.locator("main")).to_contain_text("of 10000")


def test_search_filters_and_has_its_address(many, open_page):
    page = open_page(many, "/hyperjobs")
    box = page.get_by_role("searchbox").first
    box.fill("job-00042")
    box.press("Enter")
    expect(page.get_by_role("link", name="job-00042").first).to_be_visible()
    expect(page.get_by_role("link", name="job-00041")).to_have_count(0)
    assert "job-00042" in page.url
    again = page.context.new_page()
    again.goto(page.url)
    expect(again.get_by_role("link", name="job-00042").first).to_be_visible()
    expect(again.get_by_role("link", name="job-00041")).to_have_count(0)


def test_an_action_is_asked_for_once_more_and_done(fleet, open_page, picture):
    fleet.put(hyperjob("to-suspend"))
    page = open_page(fleet, "/hyperjobs/team-a/to-suspend")
    page.get_by_role("link", name="Suspend").click()
    expect(page.locator("main")).to_contain_text("to-suspend")
    picture(page, "confirm")
    page.locator("main form button[type=submit], main form button").first.click()
    expect(page.get_by_role("link", name="Resume")).to_be_visible()
    fleet.remove("hyperjobs/team-a/to-suspend")
