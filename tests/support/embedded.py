"""An embedded API server as a process: `python -m tests.support.embedded DIR [--rbac]`."""

import asyncio
import json
import signal
import sys
import tempfile
from pathlib import Path

from hyperjob_core.api.schema import volcano_crds
from hyperjob_sandbox.apiserver.server import ApiServer

ROOT = Path(__file__).resolve().parents[2]


_FOLDER = tempfile.TemporaryDirectory(prefix="definitions-")


def crd_files() -> list[Path]:
    """Return the files of the HyperJob CRD, and of Volcano's and Karmada's CRDs."""
    folders = ("crds", "sandbox/hyperjob_sandbox/crds")
    found = [path for folder in folders for path in sorted((ROOT / folder).glob("*.yaml"))]
    return [*found, *map(volcano_file, volcano_crds())]


def volcano_file(name: str) -> Path:
    """Write one of Volcano's definitions for kubectl, with the types of Kubernetes in it."""
    path = Path(_FOLDER.name) / f"{name}.yaml"
    path.write_text(json.dumps(volcano_crds()[name]))
    return path


async def _serve(directory: Path, *, rbac: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    async with ApiServer(rbac=rbac) as server:
        server.kubeconfig(directory / "kubeconfig.new")
        (directory / "kubeconfig.new").rename(directory / "kubeconfig")
        await stop.wait()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), rbac="--rbac" in sys.argv[2:]))
