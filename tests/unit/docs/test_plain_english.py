"""The words of the project: sentences name a Kubernetes object, and need no second reading."""

import ast
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
    "RELEASE.md",
    "SECURITY.md",
    "certs",
    "charts",
    "controller",
    "core",
    "crds",
    "engine",
    "queueing",
    "release",
    "rules",
)
PLACES += (
    "benchmarks",
    "docs",
    "e2e",
    "examples",
    "hyperjob",
    "install",
    "sandbox",
    "tests/support",
    "trainjobs",
    "webhook",
)

# An abstract subject hides which component acts; the others have a plainer word.
FORBIDDEN = re.compile(
    r"\b(nobody|somebody|anybody|whoever|so-manieth|mend|mends|mended|tells|one that|one who)\b"
    r"|\bstands\b|, so\.(?=\s|$)"
    # The words of Kubernetes are "recreated", "deleted" or "released", "HyperJob's", "forever".
    r"|\bmade again\b|\b(gave|gives?|given) back\b|\b(of|are|is) (ours|theirs)\b"
    r"|\bfor ever\b|\banew\b"
    r"|\bnone but\b|\bnot unless\b|\bcomes? to (something|nothing)\b|\bsays? so\b",
    re.IGNORECASE,
)

# A sentence of a docstring after its first line: the verb without its subject hides who acts.
NO_SUBJECT = re.compile(
    r"(?:^|(?<=[.!?:]\s))"
    r"(Never|Is|Are|Was|Asks|Decides|Does|Follows|Gives|Has|Holds|Judges|Keeps|Knows|Looks|Makes"
    r"|Needs|Remembers|Repeats|Says|Serves|Takes|Wires|Writes)\s+[a-z]"
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
    elif FORBIDDEN.search(source):  # Python splits a file into tokens a hundred times as slowly.
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


def later_sentences(source: str) -> Iterator[str]:
    """Give each docstring of a module without its first sentence, as one line."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            summary, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
            _, _, more = summary.partition(". ")
            yield " ".join(f"{more} {rest}".split())


def test_no_sentence_of_a_docstring_lacks_its_subject() -> None:
    found = [
        f"{name}: {text[match.start() : match.end() + 60]}"
        for name in tracked()
        if name.endswith(".py")
        for source in [(ROOT / name).read_text(encoding="utf-8")]
        if NO_SUBJECT.search(" ".join(source.split()))
        for text in later_sentences(source)
        for match in NO_SUBJECT.finditer(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("docstring", "refused"),
    [
        ("The cache.\n\nNever does I/O.", True),
        ("The cache.\n\nIt holds objects. Knows nothing of events.", True),
        ("The cache. Keeps objects.", True),
        ("The cache.\n\nThe caller keeps the objects. Raises ValueError without any.", False),
        ("Keeps the objects of one kind.", False),
    ],
)
def test_the_missing_subject_is_found(docstring: str, *, refused: bool) -> None:
    (text,) = later_sentences(f'"""{docstring}"""')
    assert bool(NO_SUBJECT.search(text)) is refused


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("Nobody answers.", True),
        ("A pod, one that is bound, starts.", True),
        ("It is written first, so.", True),
        ("The sub-job stands on a cluster.", True),
        ("The sub-job is made again.", True),
        ("The gang gave back what it held.", True),
        ("A binding of ours is deleted.", True),
        ("The pod waits for ever.", True),
        ("The controller recreates the sub-job, and the pods run again.", False),
        ("The kubelet starts the pod, so it runs.", False),
        ("The HyperJob that waits is not mentioned.", False),
    ],
)
def test_the_list_refuses_what_it_says(line: str, *, refused: bool) -> None:
    assert bool(FORBIDDEN.search(line)) is refused
