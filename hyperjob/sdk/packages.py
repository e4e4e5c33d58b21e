"""Read the packages that a training needs, from a list, a requirements file or a pyproject.toml."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from yarl import URL

from hyperjob.sdk.errors import SourceError

_INCLUDE: Final = re.compile(r"(?:-r|--requirement)[ =]*(.+)")
_INDEX: Final = re.compile(r"(--(?:extra-)?index-url)[ =]+(\S+)|--pre|--prefer-binary")
_PASSWORD: Final = re.compile(r"://[^/\s@]+@")
_HASH: Final = re.compile(r"[a-z0-9]+:[0-9a-f]+")
_ONE_EQUALS: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[^\]]*\])?)\s*=\s*([^=\s].*)")
"""A version as conda writes it."""
_DEEPEST: Final = 10


def requirements_of(packages: Sequence[str] | str | Path | None) -> tuple[str, ...]:
    """Return the lines of a requirements file for pip; raise SourceError.

    `packages` is a list of requirements, or the path of a requirements file or a pyproject.toml.
    """
    if packages is None:
        return ()
    if not isinstance(packages, str | Path):
        return tuple(_installable(line.strip(), "packages") for line in packages if line.strip())
    path = Path(packages)
    if path.suffix not in (".txt", ".in", ".toml"):
        raise SourceError(
            f"packages={str(packages)!r}: expected a list such as [{str(packages)!r}], or the path"
            " of a requirements.txt or pyproject.toml"
        )
    return tuple(_of_project(path) if path.suffix == ".toml" else _of_file(path, 0))


def names_of(requirements: Sequence[str]) -> set[str]:
    """Return the names of required packages, in lower case with dashes."""
    lines = (line.partition(" --hash=")[0] for line in requirements if not line.startswith("-"))
    return {canonicalize_name(Requirement(line).name) for line in lines}


def _of_project(path: Path) -> Iterator[str]:
    """Yield the dependencies of a pyproject.toml; raise SourceError."""
    try:
        project = tomllib.loads(_text(path)).get("project")
    except tomllib.TOMLDecodeError as error:
        raise SourceError(f"{path}: not TOML: {error}") from None
    found = project.get("dependencies") if isinstance(project, dict) else None
    if not isinstance(found, list):
        raise SourceError(
            f"{path}: it has no project.dependencies: list the packages there, or in a"
            " requirements.txt"
        )
    for each in found:
        yield _installable(str(each), str(path))


def _of_file(path: Path, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise SourceError(f"{path}: requirements files include each other")
    for line in _text(path).replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if included := _INCLUDE.fullmatch(line):
            yield from _of_file(path.parent / included.group(1).strip(), depth + 1)
        elif line:
            yield _installable(line, str(path))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"{path}: {reason}") from None


def _installable(line: str, where: str) -> str:
    """Return a requirement that a container can install; raise SourceError.

    It is a package with its versions, extras, marker and hashes, or with an address of https; or an
    option that names an index of https or lets pip choose other versions.
    """
    if _PASSWORD.search(line):
        raise SourceError(
            f"{where}: a requirement has a password in its address, and every reader of the"
            " HyperJob could read it: configure pip in the image, or by env_from_secret"
        )
    if option := _INDEX.fullmatch(line):
        return f"{option[1]} {_https(option[2], where)}" if option[1] else line
    if conda := _ONE_EQUALS.fullmatch(line):
        right = f"{conda[1]}=={conda[2]}"
        raise SourceError(f"{where}: {line!r} is no requirement of pip: write {right!r}")
    wanted, *hashes = " ".join(line.split()).split(" --hash=")
    try:
        found = Requirement(wanted if all(map(_HASH.fullmatch, hashes)) else line)
    except InvalidRequirement:
        raise SourceError(
            f"{where}: {line!r} is no requirement such as 'torch>=2.9', and the containers install"
            " from their index: put a folder of this machine into the HyperJob by workdir, or into"
            " the image; PIP_FIND_LINKS and other variables of pip are for env"
        ) from None
    if found.url is not None:
        _https(found.url, where)
    return " ".join([str(found), *(f"--hash={each}" for each in hashes)])


def _https(url: str, where: str) -> str:
    """Return an address of https; raise SourceError for any other."""
    try:
        address = URL(url)
    except ValueError:
        address = URL()
    if address.scheme != "https" or not address.host:
        raise SourceError(
            f"{where}: {url!r} is no address that begins with https://, from which the containers"
            " could install"
        )
    return url
