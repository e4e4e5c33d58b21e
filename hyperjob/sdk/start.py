"""The program that a container of the SDK runs first: it unpacks what the HyperJob carries.

The command of the container has the text of this file, so it needs only Python's standard library,
3.8 or later. Its arguments are the command to run afterwards. Its variables are

- HYPERJOB_SDK_PROGRAM: the program of a function, which becomes main.py
- HYPERJOB_SDK_FOLDER: a folder, as a zip file in base64; HYPERJOB_SDK_WORKDIR: a folder by its path
- HYPERJOB_SDK_PACKAGES: requirements of pip; HYPERJOB_SDK_CACHE: the folder of their environments
- HYPERJOB_SDK_PROGRESS: `hyperjob.sdk.progress`, for images without hyperjob
"""

import base64
import fcntl
import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path


def environment(requirements: str, cache: Path) -> Path:
    """Return the folder of the environment for requirements; install them if it is not there.

    It is a virtual environment that also has the packages of this Python. Exit with pip's code.
    """
    folder = place_of(requirements, cache)
    complete = folder / "complete"
    cache.mkdir(parents=True, exist_ok=True)
    with Path(f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(requirements, folder)
            complete.touch()
    return folder


def place_of(requirements: str, cache: Path) -> Path:
    """Return the folder of the environment for requirements of this Python."""
    identity = repr((sys.version, sys.prefix, requirements)).encode()
    return cache / hashlib.sha256(identity).hexdigest()[:16]


def install(requirements: str, folder: Path) -> None:
    """Create a virtual environment with requirements and with the packages of this Python."""
    has_pip = importlib.util.find_spec("pip") is not None
    venv.create(folder, with_pip=not has_pip, symlinks=True)
    python = str(folder / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python] if has_pip else [python, "-m", "pip"]
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
    lines = [f"import site; site.addsitedir({each!r})\n" for each in packages]
    (folder / "lib" / version / "site-packages" / "hyperjob.pth").write_text("".join(lines))
    listed = folder / "requirements.txt"
    listed.write_text(requirements)
    options = ["--no-input", "--disable-pip-version-check", "--quiet", "--requirement", str(listed)]
    code = subprocess.call([*pip, "install", *options], stdout=sys.stderr)
    if code:
        sys.exit(code)


def main() -> None:
    """Unpack the program, and run the command in its place."""
    carried = [
        "PROGRAM",
        "FOLDER",
        "WORKDIR",
        "PACKAGES",
        "CACHE",
        "PROGRESS",
    ]
    given = {key: os.environ.pop("HYPERJOB_SDK_" + key, "") for key in carried}
    place = Path(tempfile.mkdtemp())
    paths = [os.environ.get("PYTHONPATH", "")]
    folder = Path(given["WORKDIR"] or place / "work")
    folder.mkdir(exist_ok=True)
    words = sys.argv[1:]
    if given["FOLDER"]:
        zipfile.ZipFile(io.BytesIO(base64.b64decode(given["FOLDER"]))).extractall(folder)
    if given["PROGRAM"]:
        program = place / "main.py"
        program.write_text(given["PROGRAM"], encoding="utf-8")
        words = [str(program) if word == "main.py" else word for word in words]
        paths.insert(0, str(folder))
    if given["PROGRESS"] and importlib.util.find_spec("hyperjob") is None:
        library = place / "library" / "hyperjob" / "sdk"
        library.mkdir(parents=True)
        (library.parent / "__init__.py").touch()
        (library / "__init__.py").write_text(given["PROGRESS"])
        paths.append(str(library.parent.parent))
    if given["PACKAGES"]:
        cache = Path(given["CACHE"] or "~/.cache/hyperjob").expanduser()
        found = environment(given["PACKAGES"], cache)
        os.environ["VIRTUAL_ENV"] = str(found)
        os.environ["PATH"] = os.pathsep.join([str(found / "bin"), os.environ.get("PATH", "")])
    if any(paths):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.chdir(folder)
    os.execvp(words[0], words)


if __name__ == "__main__":
    main()
