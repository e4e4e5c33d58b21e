"""What e2e/kind/up.sh tells Helm is taken by the chart, and arrives in the processes."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support.helm import MAJORS, one, template, unpack

UP = Path(__file__).resolve().parents[2] / "e2e/kind/up.sh"


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize(("volcano_global", "admission"), [("0", "none"), ("1", "volcano-global")])
def test_the_chart_takes_the_values(
    tmp_path: Path, major: str, volcano_global: str, admission: str
) -> None:
    printed = subprocess.run(
        ["/bin/bash", UP, "--dry-run"],
        env={"PATH": os.defpath, "VOLCANO_GLOBAL": volcano_global},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    (line,) = [each for each in printed if each.startswith("+ helm upgrade --install")]
    words = shlex.split(line)
    values = [word for at, word in enumerate(words) if word == "--set" or words[at - 1] == "--set"]
    objects = template(unpack(major, tmp_path), None, *values)
    (container,) = one(objects, "Deployment", "-controller")["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["image"] == "hyperjob:e2e"
    assert f"--queue-admission={admission}" in container["args"]
    assert {"--gang-timeout=15", "--cluster-lost-timeout=10"} <= set(container["args"])
