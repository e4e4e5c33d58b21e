"""The verdicts about texts of manifests, by kubectl and a real API server."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.controlplane import ControlPlane
from tests.support.kubectltexts import Row, rows

pytestmark = pytest.mark.skipif(
    "KUBEBUILDER_ASSETS" not in os.environ, reason="KUBEBUILDER_ASSETS is not set"
)


def test_every_verdict_of_the_table_is_that_of_kubectl(control_plane: ControlPlane):
    def differs(row: Row) -> str:
        arguments = ("apply", "--dry-run=server", "-o", "json", "-f", "-")
        done = control_plane.kubectl(*arguments, stdin=row.document(), check=False)
        if bool(done.returncode) != row.refused:
            return f"{row}: {done.stderr}"
        if not row.is_stored:
            return ""
        stored = row.field(json.loads(done.stdout))
        return "" if stored == row.stored else f"{row}: {stored}"

    with ThreadPoolExecutor(4) as threads:
        assert [text for text in threads.map(differs, rows()) if text] == []
