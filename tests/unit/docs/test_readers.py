"""A reader finds a page without searching, and installs nothing that a stranger could register."""

import re
import subprocess
from pathlib import Path

import pytest

from docs.generators import site
from hyperjob_core.settings import DEFAULT_GATES, FEATURES

ROOT = Path(__file__).parents[3]
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s#:]+\.md)(?:#[^)]*)?\)")
READERS = ("I train", "I run the platform", "I develop")
TOPICS = {
    "how to delete": r"How do I delete a HyperJob\?.*`kubectl delete hj",
    "time limits": r"^## Time limits|limit its time\?.*`spec.activeDeadlineSeconds`",
    "GPU models": r"GPU model\?.*nodeSelector",
    "spot": r"spot nodes\?.*tolerate",
    "Accelerate": r"Accelerate.*torchrun",
    "DeepSpeed": r"DeepSpeed.*torchrun",
    "Lightning": r"Lightning.*torchrun",
    "W&B": r"Weights & Biases.*Secret",
    "exec": r"kubectl exec|kubectl .* exec -it",
    "first hour on an existing installation": r"^# The first hour on an installation",
    "which one": r"^# HyperJob, MultiKueue, JobSet, SkyPilot",
    "uninstall": r"helm uninstall",
    "alerts": r"^# .*[Aa]lerts|^## HyperJob\w+",
    "queues": r"^# .*[Qq]ueue",
    "deprecation policy": r"^## Deprecation",
}
"""What readers of the two trials looked for, and what a page that answers it says."""
_INSTALLS = re.compile(
    r"(?:pipx?|uv|uvx|krew)(?:3? | tool | pip )*(?:install|run|add|inject)? +((?:(?!\" )[^`\n|)])*)"
)
_OURS = re.compile(r"^hyperjob[\w-]*(\[[\w,]*\])?([=<>~!]=?.*)?$")


def linked(page: Path) -> set[Path]:
    text = page.read_text(encoding="utf-8")
    found = {(page.parent / target).resolve() for target in _LINK.findall(text)}
    return {each for each in found if each.exists()}


@pytest.mark.parametrize("topic", TOPICS)
def test_an_answer_is_two_clicks_from_the_readme(topic: str) -> None:
    start = (ROOT / "README.md").resolve()
    once = linked(start)
    pages = {start, *once, *(page for each in once for page in linked(each))}
    pattern = re.compile(TOPICS[topic], re.MULTILINE)
    assert [page for page in pages if pattern.search(page.read_text(encoding="utf-8"))]


def test_the_contents_are_by_reader_and_each_page_is_listed_for_one_of_them() -> None:
    text = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert tuple(heads[:3]) == READERS
    sections = dict(zip(heads, re.split(r"^## .+$", text, flags=re.MULTILINE)[1:], strict=True))
    lists = [set(_LINK.findall(sections[reader])) for reader in READERS]
    assert all(len(each) >= 4 for each in lists)
    assert set.intersection(*lists) == set()


def test_the_site_has_each_page_by_reader_and_each_link_leads_to_a_file_of_it(
    tmp_path: Path,
) -> None:
    site.write(tmp_path)
    listed = re.findall(r"[\w./-]+\.md", str(site.order()))
    assert {*map(Path, listed)} == {*site.pages()}
    assert [next(iter(tab)) for tab in site.order()][1:4] == list(READERS)
    for page in site.pages():
        for target in re.findall(
            r"\]\(([^)\s:#]+)(?:#[^)]*)?\)", (tmp_path / page).read_text(encoding="utf-8")
        ):
            assert (tmp_path / page.parent / target).is_file(), f"{page}: {target}"


def test_the_table_of_feature_gates_has_each_gate_as_the_controller_knows_it() -> None:
    text = (ROOT / "docs/stability.md").read_text(encoding="utf-8")
    assert re.findall(
        r"^\| `(\w+)` \| `(\w+)` \| (\w+) \| ([\d.]+) \| (.+) \|$", text, re.MULTILINE
    ) == [
        (name, str(name in DEFAULT_GATES).lower(), each.stage, each.since, each.what)
        for name, each in FEATURES.items()
    ]


def asked(text: str) -> list[str]:
    """Return the names of ours that the commands of a text would take from an index."""
    words = [word for line in _INSTALLS.findall(text) for word in line.split()]
    return [word for word in words if _OURS.match(word.strip("\"'"))]


def test_no_text_asks_an_index_for_a_name_that_is_not_ours_yet() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    endings = (".md", ".py", ".sh", ".yaml", ".tpl", ".txt", ".toml", ".ipynb", "Makefile")
    texts = [name for name in tracked if name.endswith(endings) and (ROOT / name).exists()]
    found = {
        name: asked((ROOT / name).read_text(encoding="utf-8"))
        for name in texts
        if name != str(Path(__file__).relative_to(ROOT))
    }
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`pip install hyperjob`", ["hyperjob"]),
        ("$ pip install 'hyperjob[sandbox]'", ["'hyperjob[sandbox]'"]),
        ("pip3 install -U kubeflow hyperjob==0.1.0", ["hyperjob==0.1.0"]),
        ("uv pip install hyperjob-sandbox", ["hyperjob-sandbox"]),
        ("uv tool install hyperjob", ["hyperjob"]),
        ("pipx run hyperjob lint", ["hyperjob"]),
        ("kubectl krew install hyperjob", ["hyperjob"]),
        ("pip install ./hyperjob-*.whl ./hyperjob_sandbox-*.whl", []),
        ("kubectl krew install --manifest=hyperjob.krew.yaml", []),
        ("helm install hyperjob charts/hyperjob", []),
    ],
)
def test_a_file_is_no_name(text: str, expected: list[str]) -> None:
    assert asked(text) == expected
