"""What is printed: differences by path, rows, summaries, findings, JSON; and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hyperjob.cli import main
from hyperjob.cli.install import view
from hyperjob_core.kube.errors import Conflict, Forbidden, NotFound, Unavailable, make_status
from hyperjob_core.kube.resources import CLUSTER_ROLES, CRDS, LEASES, NAMESPACES
from hyperjob_install.diff import changed_fields, shorten
from hyperjob_install.plan import Action, Change
from hyperjob_install.preflight import CheckResult, Finding, PreflightReport, Status
from hyperjob_install.problems import Problem, field_conflict, refused
from tests.unit.install.observations import ca_pem

Object = dict[str, Any]


def thing(spec: Any, **metadata: Any) -> Object:
    return {"metadata": {"name": "x", **metadata}, "spec": spec}


DIFFERENCES = {
    "nothing": (thing({"a": 1}), thing({"a": 1}), ()),
    "the server's own": (
        thing({"a": 1}, resourceVersion="1", uid="1", generation=1, managedFields=[1]),
        {**thing({"a": 1}, resourceVersion="2", managedFields=[2]), "status": {"x": 1}},
        (),
    ),
    "a value": (thing({"a": {"b": 1}}), thing({"a": {"b": 2}}), ("spec.a.b",)),
    "a new key and an old one": (thing({"a": 1}), thing({"b": 1}), ("spec.a", "spec.b")),
    "an element": (thing({"a": [1, {"b": 2}]}), thing({"a": [1, {"b": 3}]}), ("spec.a[1].b",)),
    "the length of a list": (thing({"a": [1]}), thing({"a": [1, 2]}), ("spec.a",)),
    "a label": (thing({}), thing({}, labels={"a": "b"}), ("metadata.labels",)),
    "a type": (thing({"a": {}}), thing({"a": []}), ("spec.a",)),
    "a list becomes a text": (thing({"a": ["x"]}), thing({"a": "y"}), ("spec.a",)),
    "a text becomes a list": (thing({"a": "y"}), thing({"a": ["x"]}), ("spec.a",)),
    "null is not nothing": (thing({"a": None}), thing({}), ("spec.a",)),
}


@pytest.mark.parametrize("case", DIFFERENCES)
def test_differences_are_told_by_path(case: str) -> None:
    before, after, expected = DIFFERENCES[case]
    assert changed_fields(before, after) == expected


def test_a_long_list_of_paths_is_cut_where_it_still_says_where() -> None:
    paths = tuple(f"spec.versions[0].schema.field{i}" for i in range(40))
    assert shorten(paths) == ("spec.versions[0]",)
    assert shorten(paths[:3]) == paths[:3]


CREATED = Change(CLUSTER_ROLES, "hyperjob-controller", None, Action.CREATED)
CONFIGURED = Change(LEASES, "l", "ns", Action.CONFIGURED, ("spec.a", "spec.b"))
UNCHANGED = Change(CRDS, "x", None, Action.UNCHANGED)
KEPT = Change(NAMESPACES, "ns", None, Action.KEPT, note="not made by hyperjob install")


def test_only_what_differs_has_a_row() -> None:
    header, *rows = view.rows([CREATED, CONFIGURED, UNCHANGED, KEPT])
    assert header.split() == ["ACTION", "OBJECT", "NAMESPACE", "FIELDS"]
    assert [row.split() for row in rows] == [
        ["created", "clusterrole.rbac.authorization.k8s.io/hyperjob-controller"],
        ["configured", "lease.coordination.k8s.io/l", "ns", "spec.a,spec.b"],
    ]
    assert header.index("NAMESPACE") == rows[1].index("ns", rows[1].index("/l"))


def test_what_an_uninstall_leaves_has_a_row_too() -> None:
    assert view.rows([UNCHANGED, KEPT], kept=True)[1].endswith("not made by hyperjob install")
    assert view.rows([UNCHANGED]) == []


SUMMARIES = {
    "changes": ([CREATED, CONFIGURED, KEPT], False, "1 created, 1 configured, 1 kept"),
    "a dry run": ([CREATED], True, "1 created (dry run: nothing was written)"),
    "no changes": (
        [UNCHANGED, KEPT],
        False,
        "Nothing to change: 2 objects checked, all up to date.",
    ),
    "nothing there": (
        [Change(CRDS, "x", None, Action.ABSENT), KEPT],
        False,
        "Nothing to delete: none of 2 objects exists and is HyperJob's.",
    ),
}


@pytest.mark.parametrize("case", SUMMARIES)
def test_one_line_sums_it_up(case: str) -> None:
    changes, dry_run, expected = SUMMARIES[case]
    assert view.summary(changes, dry_run=dry_run) == expected


def test_changes_as_json() -> None:
    problem = Problem("crd/x", "is owned", "force it")
    found = json.loads(view.changes_json([CONFIGURED], [problem], dry_run=True))
    assert found == {
        "dryRun": True,
        "changes": [
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
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


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (Forbidden(make_status(403, "no")), "administrator"),
        (NotFound(make_status(404, "no")), "--kubeconfig"),
        (Unavailable(make_status(503, "no")), "try again"),
        (Conflict(make_status(422, "no")), "correct the cause"),
    ],
)
def test_a_refusal_says_what_to_do(error: Any, remedy: str) -> None:
    problem = refused("crd/x", error)
    assert problem.message == "no"
    assert remedy in problem.remedy


SERVER = "--kubeconfig 'my file' --context blue"
COMMANDS = {
    "kubectl get x": f"kubectl {SERVER} get x",
    "hyperjob install --ca-file x": f"hyperjob install {SERVER} --ca-file x",
    "hyperjob-certs inject -x": (
        "hyperjob-certs inject --kubeconfig 'my file' --karmada-context blue -x"
    ),
    "install it, then see `kubectl get cluster a -o yaml`": (
        f"install it, then see `kubectl {SERVER} get cluster a -o yaml`"
    ),
    "correct it: kubectl get hj NAME -o yaml | hyperjob lint -": (
        f"correct it: kubectl {SERVER} get hj NAME -o yaml | hyperjob lint -"
    ),
    "start hyperjob-webhook; if the address is wrong: hyperjob install": (
        f"start hyperjob-webhook; if the address is wrong: hyperjob install {SERVER}"
    ),
    "hyperjob after-restore, with other rights": (
        f"hyperjob after-restore {SERVER}, with other rights"
    ),
    "hyperjob-certs rotate --kubeconfig h": "hyperjob-certs rotate --kubeconfig h",
    "helm upgrade hyperjob charts/hyperjob": "helm upgrade hyperjob charts/hyperjob",
    "karmadactl join": "karmadactl join",
    "upgrade Karmada": "upgrade Karmada",
    "": "",
}


@pytest.mark.parametrize("remedy", COMMANDS)
def test_a_command_reaches_the_server_that_was_looked_at(remedy: str) -> None:
    flags = view.server_flags(Path("my file"), "blue")
    assert view.aimed(remedy, flags) == COMMANDS[remedy]
    assert view.aimed(remedy, view.server_flags(None, None)) == remedy


def test_a_finding_is_one_line() -> None:
    report = PreflightReport(
        (
            Finding("karmada", CheckResult(Status.OK, "fine")),
            Finding("default-queue", CheckResult(Status.FAILED, "is not there", "kubectl create")),
        )
    )
    assert view.findings(report, flags="") == [
        "ok        karmada        fine",
        "failed    default-queue  is not there -> kubectl create",
    ]
    found = json.loads(view.report_json(report, flags=""))
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


@pytest.mark.parametrize("command", ["install", "uninstall", "preflight"])
def test_help_has_an_example(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert f"Example: hyperjob {command}" in " ".join(result.stdout.split())
