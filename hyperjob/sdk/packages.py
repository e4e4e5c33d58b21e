"""Read the packages that a training needs, from a list, a requirements file or a pyproject.toml."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from hyperjob.sdk.errors import SourceError

_INCLUDE: Final = re.compile(r"(?:-r|--requirement)[ =]*(.+)")
_INDEX: Final = re.compile(
    r"--(?:index-url|extra-index-url|no-index|find-links|pre|prefer-binary)\b"
)
_CREDENTIALS: Final = re.compile(r"://[^/\s@]+@")
_PATH: Final = re.compile(r"[./~]|file:|[^\[ ]*\.(?:whl|tar\.gz|zip)$")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
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
    """Return the names of required packages, in lower case."""
    found = (_NAME.match(line) for line in requirements)
    return {each.group().lower().replace("_", "-") for each in found if each}


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
    """Return a requirement that a container can install; raise SourceError."""
    if "\n" in line:
        raise SourceError(f"{where}: {line!r} is more than one requirement")
    if conda := _ONE_EQUALS.fullmatch(line):
        right = f"{conda[1]}=={conda[2]}"
        raise SourceError(f"{where}: {line!r} is no requirement of pip: write {right!r}")
    if _CREDENTIALS.search(line):
        raise SourceError(
            f"{where}: a requirement has a password in its address, and every reader of the"
            " HyperJob could read it: configure pip in the image, or by env_from_secret"
        )
    if (line.startswith("-") and not _INDEX.match(line)) or _PATH.match(line):
        raise SourceError(
            f"{where}: {line!r} names something of this machine, and the containers install from"
            " their index: put the folder into the HyperJob by workdir, or into the image"
        )
    return line
