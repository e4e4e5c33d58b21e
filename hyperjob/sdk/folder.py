"""What a training brings from this machine: files of a folder, and requirements of packages.

Every reader of a HyperJob can read the folder in it. Every file that is neither therefore stays on
this machine, whatever its name and content.
"""

import base64
import io
import re
import sys
import tomllib
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pathspec import GitIgnoreSpec
from yarl import URL

from hyperjob.sdk.errors import SourceError
from hyperjob_core.text import listed, printable

LONGEST_BYTES: Final = 96 * 1024
"""Linux limits an environment variable to 128 KiB."""
_PACKED_BYTES: Final = 64 * 1024 * 1024
"""A larger folder is not compressed to learn whether it fits."""
_MOST_BYTES: Final = 1024 * 1024 * 1024
_MOST_FILES: Final = 10_000
_NAMED: Final = 30
_IGNORED: Final = frozenset({"__pycache__", "venv", "node_modules"})
_ENVIRONMENT: Final = "pyvenv.cfg"
"""A virtual environment of any name has this file."""
_IGNORE_FILES: Final = (".gitignore", ".hyperjobignore")
_PRIVATE_KEY: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----")


@dataclass(frozen=True, slots=True)
class _Rules:
    """The ignore files of one folder."""

    folder: Path
    spec: GitIgnoreSpec

    def verdict(self, path: Path, *, is_folder: bool) -> bool | None:
        """Return whether a path is ignored; None where no pattern matches."""
        name = path.relative_to(self.folder).as_posix() + ("/" if is_folder else "")
        return self.spec.check_file(name).include


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of a training: the files that its pods get, and those that stay on this machine."""

    path: Path
    sent: Sequence[Path]
    others: Sequence[Path]
    sizes: Mapping[Path, int]

    @classmethod
    def of(cls, folder: Path, needed: Path | None = None, include: Sequence[str] = ()) -> Self:
        """Read a folder; raise SourceError where it has too many files, or one cannot be read.

        `needed` is the script. `include` has paths of further files, which no ignore file leaves
        out, and patterns in git's syntax. Raise SourceError for a path or pattern without a file,
        and for a file with a private key.
        """
        try:
            return cls._read(folder, needed, include)
        except OSError as error:
            path = _escaped(Path(error.filename or folder))
            raise SourceError(f"{path}: {error.strerror}") from None

    @classmethod
    def _read(cls, folder: Path, needed: Path | None, include: Sequence[str]) -> Self:
        found = set(_files(folder, _above(folder)))
        sent = {path for path in found if path.suffix == ".py"}
        sent |= {path for each in include for path in _included(each, folder, found)}
        sent |= set() if needed is None else {needed}
        sizes = {path: path.stat().st_size for path in sent}
        if sum(sizes.values()) <= _MOST_BYTES:  # a larger folder never leaves this machine
            for path in sent:
                if _PRIVATE_KEY.search(path.read_bytes()):
                    raise SourceError(
                        f"{_escaped(path)}: it has a private key, and every reader of the"
                        " HyperJob could read it: give it to the pods by a Secret (env_from_secret,"
                        " volumes)"
                    )
        return cls(path=folder, sent=sorted(sent), others=sorted(found - sent), sizes=sizes)

    @property
    def programs(self) -> list[Path]:
        """Return the files of Python."""
        return [path for path in self.sent if path.suffix == ".py"]

    @property
    def fits(self) -> bool:
        """Return whether a HyperJob can contain the folder."""
        return self._size <= _PACKED_BYTES and len(self._base64()) <= LONGEST_BYTES

    def text(self) -> str:
        """Return the folder as a zip file in base64, and print what it has.

        Raise SourceError for a folder that a HyperJob cannot contain.
        """
        if self._size > _PACKED_BYTES:
            raise self._too_large("more than 64 MiB")
        text = self._base64()
        if len(text) > LONGEST_BYTES:
            raise self._too_large(f"{len(text) // 1024} KiB")
        self.say()
        return text

    def say(self, where: str = "into the HyperJob, whose readers can read them") -> None:
        """Print which files the pods get, and which stay on this machine."""
        first = sorted(self.sent, key=lambda path: path.suffix == ".py")
        _remark(
            f"{_count(self.sent)} of {_escaped(self.path)} ({_bytes_text(self._size)}) go {where}:"
            f" {_listed(self.path, first, self.sizes)}"
        )
        if self.others:
            names = [_escaped(path.relative_to(self.path)) for path in self.others]
            _remark(
                f"{_count(self.others)} of other kinds stay here: {listed(names, shown=_NAMED)};"
                f" include={[names[0]]}, or --include of `hyperjob run`, sends one"
            )

    @property
    def _size(self) -> int:
        return sum(self.sizes[path] for path in self.sent)

    def _base64(self) -> str:
        return base64.b64encode(_archive(self.path, self.sent)).decode()

    def _too_large(self, size: str) -> SourceError:
        largest = sorted(self.sent, key=lambda path: -self.sizes[path])
        return SourceError(
            f"{_escaped(self.path)}: the folder takes {size}, and a HyperJob can contain at most"
            f" {LONGEST_BYTES // 1024} KiB: {_listed(self.path, largest, self.sizes)}."
            " Include fewer, leave files out by a .hyperjobignore, or put them into the image or"
            " onto a volume (docs/tasks/data.md)",
        )


def _archive(folder: Path, files: Sequence[Path]) -> bytes:
    """Return a zip file; with a fixed timestamp, equal folders make equal archives."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            entry = zipfile.ZipInfo(str(path.relative_to(folder)), (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (path.stat().st_mode & 0o777) << 16
            archive.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def _files(folder: Path, rules: Sequence[_Rules]) -> Iterator[Path]:
    """Yield the files of a folder and its folders that no rule leaves out; raise SourceError."""
    pending, count = [(folder, [*rules, *_rules_of(folder)])], 0
    while pending:
        at, known = pending.pop()
        for path in at.iterdir():
            is_folder = path.is_dir()
            if (
                path.name.startswith(".")
                or path.name in _IGNORED
                or path.is_symlink()
                or (is_folder and (path / _ENVIRONMENT).exists())
                or _is_ignored(path, known, is_folder=is_folder)
            ):
                continue
            if is_folder:
                pending.append((path, [*known, *_rules_of(path)]))
            elif path.is_file():
                count += 1
                if count > _MOST_FILES:
                    raise SourceError(
                        f"{_escaped(folder)}: the folder has more than {_MOST_FILES} files: put"
                        " the script into a folder of its own"
                    )
                yield path


def _above(folder: Path) -> list[_Rules]:
    """Return the rules of the folders above, up to the top of the git repository, outermost first.

    A folder in no repository has none.
    """
    folder = folder.absolute()
    for number, top in enumerate((folder, *folder.parents)):
        if (top / ".git").exists():
            between = [folder, *folder.parents][1 : number + 1]
            return [rules for each in reversed(between) for rules in _rules_of(each)]
    return []


def _rules_of(folder: Path) -> list[_Rules]:
    files = [folder / name for name in _IGNORE_FILES if (folder / name).is_file()]
    return [
        _Rules(
            folder.absolute(),
            GitIgnoreSpec.from_lines(file.read_text("utf-8", "replace").splitlines()),
        )
        for file in files
    ]


def _is_ignored(path: Path, rules: Sequence[_Rules], *, is_folder: bool) -> bool:
    """Return the verdict of the innermost rules that have one; .hyperjobignore is the inner one."""
    for each in reversed(rules):
        verdict = each.verdict(path.absolute(), is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def _included(wanted: str, folder: Path, found: Collection[Path]) -> Iterator[Path]:
    """Yield the files that a path or a pattern names; raise SourceError if it names none."""
    path, top = (folder / wanted).resolve(), folder.resolve()
    if path.is_file():
        if not path.is_relative_to(top):
            raise SourceError(f"include={wanted!r}: the file is not in {str(folder)!r}")
        yield folder / path.relative_to(top)
        return
    try:
        spec = GitIgnoreSpec.from_lines([wanted])
    except ValueError as error:
        raise SourceError(f"include={wanted!r}: no pattern of git: {error}") from None
    chosen = [each for each in found if spec.match_file(each.relative_to(folder).as_posix())]
    if not chosen:
        raise SourceError(
            f"include={wanted!r}: no file of {str(folder)!r} has this path or matches it; a pattern"
            " names neither hidden files nor those that .gitignore leaves out"
        )
    yield from chosen


def _count(paths: Sequence[Path]) -> str:
    return f"{len(paths)} file{'' if len(paths) == 1 else 's'}"


def _escaped(path: Path) -> str:
    """Return a path as a terminal may print it: on one line, without control characters."""
    return printable(str(path)).replace("\n", "\\n")


def _listed(folder: Path, paths: Sequence[Path], sizes: Mapping[Path, int]) -> str:
    named = [f"{_escaped(path.relative_to(folder))} {_bytes_text(sizes[path])}" for path in paths]
    return listed(named, shown=_NAMED)


def _bytes_text(size: int) -> str:
    """Return a number of bytes in B, KiB or MiB, rounded up."""
    for unit in ("B", "KiB"):
        if size < 1024:
            return f"{size} {unit}"
        size = -(-size // 1024)
    return f"{size} MiB"


def _remark(text: str) -> None:
    print(f"hyperjob: {text}", file=sys.stderr)


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
