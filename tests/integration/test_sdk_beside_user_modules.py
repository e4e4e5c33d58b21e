"""The README's SDK example in a folder whose modules have common names, beside the user's client.

The script imports `kubernetes` itself, before and after it works with HyperJob.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hyperjob.sdk import Client
from tests.support.processes import ran
from tests.support.rooms import BELOW

pytestmark = [pytest.mark.scenario, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
MODULES = (*BELOW, "sandbox")
EXAMPLE = next(
    block
    for block in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    if "Client.local(" in block
)

WHOLE = """
import sys
import kubernetes
import kubernetes.aio

assert kubernetes.config.load_kube_config and kubernetes.client.CoreV1Api
assert kubernetes.aio.config.load_kube_config and kubernetes.aio.client.CoreV1Api
"""
USED = """
kubernetes.config.load_kube_config(sys.argv[1])
assert kubernetes.client.CoreV1Api().list_namespace(limit=1).items
"""
OWN = "\n".join(f"import {name}\nassert {name}.MINE" for name in MODULES)


@pytest.fixture(scope="module")
def plane() -> Iterator[Path]:
    with Client.local(clusters=2) as client:
        yield Path(str(client.kubeconfig))


@pytest.fixture(scope="module", params=["plain", "exec"])
def kubeconfig(
    request: pytest.FixtureRequest, plane: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Write the administrator's kubeconfig as it is, or with a plugin that prints its key."""
    if request.param == "plain":
        return plane
    folder = tmp_path_factory.mktemp("exec")
    content = yaml.safe_load(plane.read_text())
    user = content["users"][0]["user"]
    decoded = "__import__('base64').b64decode"
    plugin = folder / "plugin"
    plugin.write_text(
        f"#!{sys.executable}\n"
        "import json\n"
        f"given = json.loads({json.dumps(json.dumps(user))})\n"
        f"key = {{n: {decoded}(given[f'client-{{p}}-data']).decode()\n"
        "       for n, p in (('clientCertificateData', 'certificate'), ('clientKeyData', 'key'))}\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',\n"
        "                  'kind': 'ExecCredential', 'status': key}))\n"
    )
    plugin.chmod(0o700)
    content["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("before", [True, False], ids=["imported before", "imported after"])
def test_the_example_runs_beside_modules_and_a_client_of_the_user(
    before: bool, kubeconfig: Path, tmp_path: Path
) -> None:
    for name in MODULES:
        (tmp_path / f"{name}.py").write_text("MINE = True\n")
    assert EXAMPLE.count("Client.local(clusters=2)") == 1
    example = EXAMPLE.replace("Client.local(clusters=2)", "Client(kubeconfig=sys.argv[1])")
    parts = ["import sys", WHOLE if before else "", example, WHOLE, USED, OWN]
    (tmp_path / "script.py").write_text("\n".join(parts))
    done = ran(sys.executable, "script.py", str(kubeconfig), cwd=tmp_path, timeout=200)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"step 9 loss", done.stdout)) == 4, done.stdout
