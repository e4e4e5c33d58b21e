"""What e2e/kind/up.sh tells Helm is taken by the chart, and arrives in the processes."""

import shlex
from pathlib import Path

import pytest

from tests.support.helm import MAJORS, one, template, unpack
from tests.support.kindmachine import Machine


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize(("volcano_global", "admission"), [("0", "none"), ("1", "volcano-global")])
def test_the_chart_takes_the_values(
    tmp_path: Path, major: str, volcano_global: str, admission: str
) -> None:
    code, output, calls = Machine(tmp_path / "machine").run("up.sh", VOLCANO_GLOBAL=volcano_global)
    assert code == 0, output
    (line,) = [each for each in calls if each.startswith("helm upgrade --install")]
    words = shlex.split(line)
    values = [word for at, word in enumerate(words) if word == "--set" or words[at - 1] == "--set"]
    objects = template(unpack(major, tmp_path), None, *values)
    (container,) = one(objects, "Deployment", "-controller")["spec"]["template"]["spec"][
        "containers"
    ]
    assert container["image"] == "hyperjob:e2e"
    assert f"--queue-admission={admission}" in container["args"]
    assert {"--gang-timeout=15", "--cluster-lost-timeout=10"} <= set(container["args"])
