"""The Karmada of given binaries: what it needs, and how webhooks are registered in it."""

from pathlib import Path

import pytest
import yaml

from e2e.karmada.__main__ import main
from e2e.karmada.controlplane import registration

REGISTERED = """
webhooks:
- name: a.karmada.io
  clientConfig:
    url: https://karmada-webhook.karmada-system.svc:443/mutate
{authority}  failurePolicy: Fail
- name: b.karmada.io
  clientConfig:
    url: https://karmada-webhook.karmada-system.svc:443/validate
{authority}  failurePolicy: Fail
"""


@pytest.mark.parametrize("authority", ["", "    caBundle: {{caBundle}}\n"])
def test_webhooks_are_registered_at_their_port_of_this_machine(authority: str) -> None:
    text = registration(REGISTERED.replace("{authority}", authority), port=7, authority="Y2E=")
    assert [each["clientConfig"] for each in yaml.safe_load(text)["webhooks"]] == [
        {"url": "https://127.0.0.1:7/mutate", "caBundle": "Y2E="},
        {"url": "https://127.0.0.1:7/validate", "caBundle": "Y2E="},
    ]


def test_the_command_names_every_binary_and_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "etcd").touch()
    words = (
        word for name in ("binaries", "karmada", "volcano") for word in (f"--{name}", tmp_path)
    )
    with pytest.raises(SystemExit):
        main([*map(str, words), "--pull", "true"])
    said = capsys.readouterr().err
    assert f"{tmp_path}/kube-apiserver, " in said
    assert f"{tmp_path}/karmada-agent, " in said
    assert f"{tmp_path}/charts/karmada/_crds/bases" in said
    assert "etcd" not in said
    assert "vg-webhook-manager" not in said
