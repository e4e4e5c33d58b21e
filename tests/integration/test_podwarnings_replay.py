"""The corpus of pod templates as dry-run PodTemplates: a real API server warns as admission does.

Runs where KUBEBUILDER_ASSETS names a kube-apiserver.
"""

import json
import os
import re
from typing import Any, Final

import pytest

from tests.integration.test_podtemplate_replay import TEMPLATE, dry_run, template_of
from tests.support.controlplane import ControlPlane
from tests.unit.rules.test_validation_corpus import CASES, Case

pytestmark = pytest.mark.skipif(
    "KUBEBUILDER_ASSETS" not in os.environ, reason="only a real API server knows its own warnings"
)
DIFFERENCES: Final = {
    "pods of a split that are too many together": "Kubernetes takes 1Ei for a fraction",
}
QUOTED: Final = re.compile(r'299 - ("(?:[^"\\]|\\.)*")')


def warned(control_plane: ControlPlane, template: dict[str, Any]) -> set[str] | None:
    """Return the warnings of the API server about a template; None where it refuses it."""
    body = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "a"}}
    answer, found = dry_run(control_plane, "podtemplates", {**body, "template": template})
    if answer["kind"] == "Status":
        return None
    texts = [json.loads(quoted) for one in found for quoted in QUOTED.findall(one)]
    return {text.replace("template.", "") for text in texts if "unknown field" not in text}


def own(case: Case) -> set[str]:
    """Return our warnings of that kind, without the place of the template."""
    remarks = [one for one in case.judge().remarks if one.rule.id.startswith("X21.")]
    return {one.text.replace(TEMPLATE, "").replace("storageos:", "storageOS:") for one in remarks}


def test_a_real_api_server_warns_of_the_pods_as_admission_does(control_plane: ControlPlane) -> None:
    surprises: dict[str, Any] = {}
    compared, differing = 0, set()
    for case in CASES:
        template = template_of(case) if case.update is None else None
        theirs = warned(control_plane, template) if template is not None else None
        if theirs is None:
            continue
        ours = own(case)
        compared += bool(ours)
        title = case.name.partition(": ")[2]
        if ours != theirs and title in DIFFERENCES:
            differing.add(title)
        elif ours != theirs:
            surprises[case.name] = {"only ours": ours - theirs, "only theirs": theirs - ours}
    assert surprises == {}
    assert compared > 5
    assert DIFFERENCES.keys() == differing, "these agree by now: remove them from the list"
