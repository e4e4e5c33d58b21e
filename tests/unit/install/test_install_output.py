"""What is printed: differences by path, rows, summaries, findings, JSON; and what is refused."""

import json
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from hyperjob.cli import install, main
from hyperjob_core.api.field import make_status
from hyperjob_core.kube.errors import Conflict
from hyperjob_core.kube.resources import CLUSTER_ROLES, CRDS, LEASES, NAMESPACES
from hyperjob_install.objects import Component, new_item
from hyperjob_install.plan import Action, Change
from hyperjob_install.preflight import CheckResult, Finding, PreflightReport, Status
from hyperjob_install.problems import Problem, field_conflict
from tests.unit.install.observations import ca_pem

_item = partial(new_item, content={}, part=Component.RBAC, component="rbac")
CREATED = Change(_item(CLUSTER_ROLES, "hyperjob-controller"), Action.CREATED)
CONFIGURED = Change(_item(LEASES, "l", namespace="ns"), Action.CONFIGURED, ("spec.a", "spec.b"))
UNCHANGED = Change(_item(CRDS, "x"), Action.UNCHANGED)
KEPT = Change(_item(NAMESPACES, "ns"), Action.KEPT, note="not made by hyperjob install")


def test_only_what_differs_has_a_row() -> None:
    header, *rows = install.rows([CREATED, CONFIGURED, UNCHANGED, KEPT])
    assert header.split() == ["ACTION", "OBJECT", "NAMESPACE", "FIELDS"]
    assert [row.split() for row in rows] == [
        ["created", "clusterrole.rbac.authorization.k8s.io/hyperjob-controller"],
        ["configured", "lease.coordination.k8s.io/l", "ns", "spec.a,spec.b"],
    ]
    assert header.index("NAMESPACE") == rows[1].index("ns", rows[1].index("/l"))


def test_changes_as_json() -> None:
    problem = Problem("crd/x", "is owned", "force it")
    found = json.loads(install.changes_json([CONFIGURED], [problem], dry_run=True))
    assert found == {
        "dryRun": True,
        "changes": [
            {
                **LEASES.head,
                "name": "l",
                "namespace": "ns",
                "action": "configured",
                "fields": ["spec.a", "spec.b"],
                "note": "",
            }
        ],
        "problems": [{"object": "crd/x", "message": "is owned", "remedy": "force it"}],
        "error": "",
    }


def test_a_conflict_names_fields_and_managers() -> None:
    causes = [
        {"field": ".spec.a", "message": 'conflict with "kubectl"'},
        {"field": ".spec.b", "message": 'conflict with "kubectl"'},
        {"field": ".spec.c", "message": 'conflict with "helm"'},
    ]
    status = {**make_status(409, "conflict"), "details": {"causes": causes}}
    problem = field_conflict("crd/x", Conflict(status))
    assert '.spec.a, .spec.b by "kubectl"; .spec.c by "helm"' in problem.message
    assert "--allow conflicts" in problem.remedy
    assert "conflict" in field_conflict("crd/x", Conflict(make_status(409, "conflict"))).message


def test_a_finding_is_one_line() -> None:
    report = PreflightReport(
        (
            Finding("karmada", CheckResult(Status.OK, "fine")),
            Finding("default-queue", CheckResult(Status.FAILED, "is not there", "kubectl create")),
        )
    )
    assert install.findings(report, flags="") == [
        "ok        karmada        fine",
        "failed    default-queue  is not there -> kubectl create",
    ]
    found = json.loads(install.report_json(report, flags=""))
    assert found["passed"] is False
    assert found["checks"][1] == {
        "check": "default-queue",
        "status": "failed",
        "message": "is not there",
        "remedy": "kubectl create",
    }


# usage

CA = {"ca.crt": ca_pem(40_000), "old.crt": ca_pem(-1), "empty.crt": b"", "bad.crt": b"x"}
USAGE = {
    "accounts of two kinds": (
        ["--service-accounts", "--user-prefix", "x:"],
        "give either --user-prefix or --service-accounts",
    ),
    "a part that is added and removed": (
        ["--with", "ui", "--without", "ui"],
        "give either --with ui or --without ui",
    ),
    "two addresses": (
        ["--webhook-url", "https://x", "--webhook-service", "a/b"],
        "give either --webhook-url or --webhook-service",
    ),
    "an address without TLS": (["--webhook-url", "http://x"], "must start with https://"),
    "half a service": (["--webhook-service", "a"], "must be NAMESPACE/NAME[:PORT]"),
    "a service with a bad port": (["--webhook-service", "a/b:c"], "must be NAMESPACE/NAME"),
    "half a service account": (
        ["--webhook-url", "https://x", "--user-prefix", "system:serviceaccount:a"],
        "must be system:serviceaccount:NAMESPACE:NAME",
    ),
    "an expired CA": (["--webhook-url", "https://x", "--ca-file", "old.crt"], "have expired"),
    "an empty CA": (["--webhook-url", "https://x", "--ca-file", "empty.crt"], "no certificate"),
    "no CA at all": (["--webhook-url", "https://x", "--ca-file", "bad.crt"], "bad.crt"),
    "an unknown part": (["--skip", "everything"], "'everything' is not one of"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_usage_error_is_said_before_anything_is_asked(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, expected = USAGE[case]
    for name, content in CA.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = CliRunner().invoke(main, ["install", *arguments])
    assert result.exit_code == 2
    assert expected in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["install", "--webhook-url", "https://x", "--ca-file", "ca.crt"], 1),
        (["uninstall"], 1),
        (["preflight"], 2),
    ],
)
def test_without_a_kubeconfig_the_next_step_is_said(
    command: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.crt").write_bytes(CA["ca.crt"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    result = CliRunner().invoke(main, command)
    assert result.exit_code == code
    assert "give a kubeconfig that exists with --kubeconfig" in " ".join(result.stderr.split())
