"""What a local installation prepares on this machine before a training starts."""

import asyncio
import os
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from hyperjob.sdk import start
from hyperjob.sdk.errors import SourceError
from hyperjob.sdk.program import Machine

_INSTALL: Final = (
    "import sys, pathlib; from hyperjob.sdk.start import environment;"
    " environment(sys.argv[1], pathlib.Path(sys.argv[2]))"
)
_LINES: Final = 8


def machine_of(folder: Path, images: Mapping[str, str]) -> Machine:
    """Return the machine of a local installation with a temporary folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "hyperjob"
    return Machine(snapshots=folder, cache=cache, images=images)


def require_sources() -> None:
    """Raise SourceError where this program comes from standard input and has functions.

    Python cannot read the source of these functions again.
    """
    main = sys.modules.get("__main__")
    if hasattr(sys, "ps1"):
        return
    for name, value in vars(main).items():
        if isinstance(value, types.FunctionType) and value.__code__.co_filename == "<stdin>":
            raise SourceError(
                f"{name}: Python cannot read the source of a program on its standard input: write"
                " the program into a file"
            )


async def prepare(requirements: Sequence[str], machine: Machine) -> None:
    """Install packages into their environment in the cache; raise SourceError with pip's words."""
    text = "\n".join(requirements)
    if not text or (start.place_of(text, machine.cache) / "complete").exists():
        return
    print(f"hyperjob: installs {', '.join(requirements)}", file=sys.stderr)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _INSTALL, text, str(machine.cache)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-_LINES:]
        raise SourceError("\n".join(("pip cannot install the packages:", *last)))
