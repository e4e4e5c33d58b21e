"""Every screen in a real browser: it shows what there is, at every width, and to everybody."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

SCREENS = {
    "fleet": "/",
    "hyperjobs": "/hyperjobs",
    "queues": "/queues",
    "job": "/hyperjobs/team-a/llm-pretrain",
    "metrics": "/hyperjobs/team-a/llm-pretrain/metrics",
}
IN_NAVIGATION = ("fleet", "hyperjobs", "queues")
WIDTHS = {"phone": (360, 740), "laptop": (1280, 900), "wall": (1920, 1080)}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_fits_its_width(fleet, open_page, picture, name, width):
    wide, high = WIDTHS[width]
    page = open_page(fleet, SCREENS[name], width=wide, height=high)
    expect(page.locator("h1")).to_be_visible()
    picture(page, f"{name}-{width}")
    assert page.evaluate("document.documentElement.scrollWidth") <= wide, "it scrolls sideways"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_has_names_roles_and_contrast(fleet, open_page, picture, name, scheme):
    page = open_page(fleet, SCREENS[name], color_scheme=scheme)
    expect(page.locator("h1")).to_be_visible()
    if scheme == "dark":
        picture(page, f"{name}-dark")
    found = Axe().run(page).response["violations"]
    told = [
        (one["id"], one["help"], [node["html"][:160] for node in one["nodes"][:3]]) for one in found
    ]
    assert told == []


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_readable_without_javascript(fleet, open_page, name):
    page = open_page(fleet, SCREENS[name], java_script_enabled=False)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator("main")).to_contain_text(re.compile(r"east|llm-pretrain|research|broken"))


@pytest.mark.parametrize("wide", [360, 1280])
def test_each_rank_has_a_curve_over_the_same_axes(fleet, open_page, picture, wide):
    page = open_page(fleet, SCREENS["metrics"], width=wide)
    loss = page.get_by_role("img", name=re.compile("^loss, from"))
    expect(loss).to_be_visible()
    expect(loss.locator("path.line")).to_have_count(2)
    boxes = [path.bounding_box() for path in loss.locator("path.line").all()]
    assert all(box["width"] > 0.4 * loss.bounding_box()["width"] for box in boxes)
    page.get_by_label("Over").select_option("time")
    expect(page.get_by_text("Over time since the first progress.")).to_be_visible()
    picture(page, f"metrics-time-{wide}")


def test_labels_of_the_timeline_are_whole_on_a_phone(fleet, open_page):
    page = open_page(fleet, SCREENS["job"], width=360)
    for label in page.locator(".lane-name").all():
        assert label.evaluate("el => el.scrollWidth <= el.clientWidth"), label.inner_text()
    for text in page.locator(".lane text:visible").all():
        fits = "el => el.getBBox().width <= el.ownerSVGElement.getBoundingClientRect().width"
        assert text.evaluate(fits), text.inner_text()


def test_every_column_of_events_is_readable_on_a_phone(fleet, open_page, picture):
    message = "sub-job llm-pretrain-trainer-0 waits for 64 nvidia.com/gpu on gpu-east " * 3
    fleet.put(
        {
            "kind": "Event",
            "metadata": {"namespace": "team-a", "name": "llm.1"},
            "involvedObject": {"kind": "HyperJob", "uid": "uid-team-a-llm-pretrain"},
            "type": "Warning",
            "reason": "InsufficientCapacity",
            "message": message,
            "count": 12,
            "source": {"component": "hyperjob-controller"},
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
    )
    page = open_page(fleet, f"{SCREENS['job']}/events", width=360)
    for text in ("InsufficientCapacity", message.strip(), "12", "hyperjob-controller", "Warning"):
        cell = page.locator("tbody :is(td, th)").filter(has_text=text).first
        expect(cell).to_be_visible()
        assert cell.evaluate("el => el.scrollWidth <= el.clientWidth"), text
        box = cell.bounding_box()
        assert box["x"] >= 0, text
        assert box["x"] + box["width"] <= 360, text
    picture(page, "events-phone")


@pytest.mark.parametrize("name", IN_NAVIGATION)
def test_a_screen_is_reached_by_keyboard_alone(fleet, open_page, name):
    page = open_page(fleet)
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the content")
    target = page.get_by_role("navigation").get_by_role("link").nth(IN_NAVIGATION.index(name))
    for _ in range(20):
        if page.evaluate("el => el === document.activeElement", target.element_handle()):
            break
        page.keyboard.press("Tab")
    expect(target).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none", "nobody sees where the focus is"
    page.keyboard.press("Enter")
    expect(page.locator('nav [aria-current="page"]')).to_have_text(target.inner_text())


def test_the_token_leaves_the_address(fleet, open_page):
    page = open_page(fleet)
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == "", "a script could read the session"
    assert page.evaluate("document.referrer") == ""
