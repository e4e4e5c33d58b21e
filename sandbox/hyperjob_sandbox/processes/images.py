"""The replacement of an image: an environment of this machine, by default this Python's.

`--image NAME=VALUE` maps the images whose name matches NAME (`*` is a wildcard) to a virtual
environment, where VALUE is a folder with `bin/`, or else to a command prefix.
"""

import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Self

_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ImageError(ValueError):
    """An invalid image mapping; the text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """The environment for an image: `prefix` precedes its commands, `folders` precede PATH."""

    pattern: str = "*"
    prefix: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    virtualenv: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse NAME=VALUE; raises ImageError."""
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise ImageError(f"{text!r}: expected NAME=VIRTUALENV or NAME=COMMAND")
        folder = Path(value).expanduser()
        if (folder / "bin").is_dir():
            where = os.fspath(folder.resolve())
            return cls(pattern=name, folders=(f"{where}/bin",), virtualenv=where)
        if "/" in value and " " not in value and not folder.exists():
            raise ImageError(f"{text!r}: no folder or program {value}")
        return cls(pattern=name, prefix=tuple(shlex.split(value)))

    @property
    def path(self) -> str:
        """Return PATH for the commands of this image."""
        return os.pathsep.join((*self.folders, os.environ.get("PATH", _SYSTEM_PATH)))


def this_python() -> Image:
    """Return the Python environment of the sandbox itself."""
    where = os.fspath(Path(sys.executable).parent)
    inside = sys.prefix != sys.base_prefix
    return Image(folders=(where,), virtualenv=sys.prefix if inside else "")


def image_of(name: str, images: Sequence[Image]) -> Image:
    """Return the first mapping that matches an image's name."""
    return next((each for each in images if fnmatchcase(name, each.pattern)), this_python())
