"""Prepare the files of a release: `python -m release check|notes|chart|krew`.

Nothing here publishes: the release workflow pushes what these commands write.
"""

import argparse
import hashlib
import re
import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PLATFORMS: Final = ("darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64")
"""The platforms of the archives of `kubectl hyperjob`, as Go names them."""
PLACES: Final = {
    "core/hyperjob_core/__init__.py": r'^__version__ = "(.*)"$',
    "sandbox/hyperjob_sandbox/__init__.py": r'^__version__ = "(.*)"$',
    "pyproject.toml": r"hyperjob-sandbox==([^\"]*)",
    "sandbox/pyproject.toml": r"hyperjob==([^\"]*)",
    "charts/hyperjob/Chart.yaml": r"^(?:version|appVersion): (.*)$",
    "Dockerfile": r"^ARG VERSION=(.*)$",
}
"""Where the version of a release is written; `check` compares all of them with the tag."""
_SECTION: Final = re.compile(
    r"^## \[(?P<version>[^\]]+)\].*?\n(?P<text>.*?)(?=^## \[|\Z)", re.DOTALL | re.MULTILINE
)


def check(tag: str, root: Path = ROOT) -> None:
    """Compare the tag, `v` and a version, with the tree; ValueError names each difference."""
    if not re.fullmatch(r"v\d+\.\d+\.\d+", tag):
        raise ValueError(f"the tag {tag!r} is not v and a version, such as v0.1.0")
    version = tag.removeprefix("v")
    found = []
    for place, pattern in PLACES.items():
        there = re.findall(pattern, (root / place).read_text(encoding="utf-8"), re.MULTILINE)
        wrong = [one for one in there or ["no version"] if one != version]
        found += [f"{place} has {one}, the tag {version}" for one in wrong]
    try:
        notes(tag, root)
    except ValueError as error:
        found.append(str(error))
    if found:
        raise ValueError("\nerror: ".join(found))


def notes(tag: str, root: Path = ROOT) -> str:
    """Return the section of the CHANGELOG about the tag; raises ValueError without one."""
    version = tag.removeprefix("v")
    for section in _SECTION.finditer((root / "CHANGELOG.md").read_text(encoding="utf-8")):
        if section["version"] == version and section["text"].strip():
            return section["text"].strip() + "\n"
    raise ValueError(f"CHANGELOG.md has no section [{version}]: rename [Unreleased]")


def chart(image: str, out: Path, root: Path = ROOT) -> Path:
    """Copy the chart, with `REPOSITORY@sha256:DIGEST` as its image; return its folder."""
    named = re.fullmatch(r"(?P<repository>[a-z0-9./_:-]+)@(?P<digest>sha256:[0-9a-f]{64})", image)
    if named is None:
        raise ValueError(f"{image!r} is not REPOSITORY@sha256:DIGEST")
    folder = out / "hyperjob"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "charts/hyperjob", folder)
    values = folder / "values.yaml"
    text = values.read_text(encoding="utf-8")
    for field, old, new in (
        ("repository", "hyperjob", named["repository"]),
        ("digest", '""', named["digest"]),
    ):
        text, count = re.subn(rf"(?m)(?<=^  {field}: ){re.escape(old)}$", new, text, count=1)
        if not count:
            raise ValueError(f"charts/hyperjob/values.yaml has no image.{field}: {old}")
    values.write_text(text, encoding="utf-8")
    return folder


def krew(tag: str, repository: str, archives: Path) -> str:
    """Return the manifest of the plugin for krew, with the hash of each archive in the folder."""
    text = (ROOT / "release/krew.yaml").read_text(encoding="utf-8")
    values = {"TAG": tag, "REPOSITORY": repository.removesuffix("/")}
    for platform in PLATFORMS:
        archive = archives / f"kubectl-hyperjob-{platform}.tar.gz"
        values[f"SHA256_{platform}"] = hashlib.sha256(archive.read_bytes()).hexdigest()
    return re.sub(r"\$\{([\w-]+)\}", lambda found: values[found[1]], text)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("check", "notes"):
        commands.add_parser(name).add_argument("tag")
    packed = commands.add_parser("chart")
    packed.add_argument("image")
    packed.add_argument("out", type=Path)
    manifest = commands.add_parser("krew")
    manifest.add_argument("tag")
    manifest.add_argument("repository")
    manifest.add_argument("archives", type=Path)
    given = parser.parse_args(arguments)
    try:
        match given.command:
            case "check":
                check(given.tag)
            case "notes":
                print(notes(given.tag), end="")
            case "chart":
                print(chart(given.image, given.out))
            case _:
                print(krew(given.tag, given.repository, given.archives), end="")
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
