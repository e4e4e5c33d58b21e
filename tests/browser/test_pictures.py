"""The pictures of the documentation: `make picture-ui` copies them from build/ui to docs/images."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import site
from tests.support.uiscene import showcase

PICTURES = {
    "ui-fleet": ("/", "llm-70b"),
    "ui-metrics": ("/hyperjobs/foundation/llm-70b/metrics", "Over steps"),
    "ui-job": ("/hyperjobs/team-a/llm-ablation", "The timeline as a table"),
}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    with site(tmp_path_factory.mktemp("shown"), showcase()) as served:
        yield served


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_documentation_can_be_made_again(shown, open_page, picture, name):
    path, words = PICTURES[name]
    page = open_page(shown, path, height=700)
    expect(page.locator("main")).to_contain_text(words)
    picture(page, name)
