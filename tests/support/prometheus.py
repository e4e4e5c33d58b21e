"""Prometheus itself, from the folder of promtool, with a past that a test writes."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes import free_port

PROMTOOL: Final = os.environ.get("HYPERJOB_PROMTOOL") or shutil.which("promtool") or ""
_SERVER: Final = str(Path(PROMTOOL).parent / "prometheus")

needs_promtool = pytest.mark.skipif(
    not PROMTOOL,
    reason="no promtool on PATH: export HYPERJOB_PROMTOOL=$(requirements/promtool.sh)",
)
needs_prometheus = pytest.mark.skipif(
    not PROMTOOL or shutil.which(_SERVER) is None, reason="no prometheus beside promtool"
)


@contextmanager
def remembering(past: Iterable[str], folder: Path) -> Iterator[str]:
    """Yield the address of a Prometheus that has scraped these samples, in OpenMetrics."""
    (folder / "past").write_text("".join(f"{line}\n" for line in (*past, "# EOF")))
    (folder / "prometheus.yml").write_text("{}")
    data = folder / "data"
    made = [PROMTOOL, "tsdb", "create-blocks-from", "openmetrics", folder / "past", data]
    subprocess.run(made, check=True, timeout=120, capture_output=True)
    address = f"127.0.0.1:{free_port()}"
    command = [
        *(_SERVER, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={data}"),
        *("--storage.tsdb.retention.time=100y", f"--web.listen-address={address}"),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            told = [next(process.stderr)]
            while "ready to receive web requests" not in told[-1]:
                told.append(next(process.stderr))
            yield f"http://{address}"
        finally:
            process.terminate()
