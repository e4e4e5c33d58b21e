"""Every screen in a real browser: it shows what there is, at every width, and to everybody."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

SCREENS = {
    "fleet": "/",
    "hyperjobs": "/hyperjobs",
    "queues": "/queues",
    "attention": "/attention",
    "history": "/history",
    "job": "/hyperjobs/team-a/llm-pretrain",
    "deleted": "/history/uid-team-a-llm-ablation",
}
IN_NAVIGATION = ("fleet", "hyperjobs", "queues", "attention", "history")
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
    expect(page.locator("main")).to_contain_text(
        re.compile(r"east|llm-pretrain|research|broken|ablation")
    )


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
