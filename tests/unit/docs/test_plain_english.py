"""The words of the project: sentences name a Kubernetes object, and need no second reading."""

import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TEXTS = (".md", ".yaml", ".yml", ".tpl", ".txt")
PLACES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "certs",
    "charts",
    "controller",
    "crds",
)
PLACES += ("docs", "examples", "hyperjob", "sandbox", "webhook")

# An abstract subject hides which component acts; the others have a plainer word.
FORBIDDEN = re.compile(
    r"\b(nobody|somebody|anybody|whoever|so-manieth|mend|mends|mended|tells|one that|one who)\b"
    r"|\bstands\b|, so\.(?=\s|$)",
    re.IGNORECASE,
)


def tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PLACES], cwd=ROOT, check=True, capture_output=True
    )
    return [name for name in listed.stdout.decode().split("\0") if (ROOT / name).is_file()]


def texts(name: str) -> Iterator[tuple[int, str]]:
    """Give the lines of a document, or of the comments and strings of a module."""
    if not name.endswith((*TEXTS, ".py")):
        return
    source = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(TEXTS):
        yield from enumerate(source.splitlines(), start=1)
    else:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                yield from enumerate(token.string.splitlines(), start=token.start[0])


def test_no_sentence_has_a_subject_that_names_no_object() -> None:
    found = [
        f"{name}:{number}: {match[0]!r} in {line.strip()}"
        for name in tracked()
        for number, line in texts(name)
        if (match := FORBIDDEN.search(line))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("Nobody answers.", True),
        ("A pod, one that is bound, starts.", True),
        ("It is written first, so.", True),
        ("The sub-job stands on a cluster.", True),
        ("The kubelet starts the pod, so it runs.", False),
        ("The HyperJob that waits is not mentioned.", False),
    ],
)
def test_the_list_refuses_what_it_says(line: str, *, refused: bool) -> None:
    assert bool(FORBIDDEN.search(line)) is refused
