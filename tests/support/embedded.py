"""An embedded API server as a process: `python -m tests.support.embedded DIR [--rbac]`."""

import asyncio
import signal
import sys
from pathlib import Path

from hyperjob_sandbox.apiserver import ApiServer

ROOT = Path(__file__).resolve().parents[2]


def crd_files() -> list[Path]:
    """Return the files of the HyperJob CRD and of Karmada's CRDs."""
    folders = ("crds", "core/hyperjob_core/api/crds", "sandbox/hyperjob_sandbox/crds")
    return [path for folder in folders for path in sorted((ROOT / folder).glob("*.yaml"))]


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
