"""The chart as Helm of both majors renders it: valid and restricted, whatever the values."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

import hyperjob
from charts import reference
from hyperjob.cli import main as cli
from hyperjob_certs.__main__ import _parser as certs_parser
from hyperjob_controller.options import SETTINGS as CONTROLLER_SETTINGS
from hyperjob_controller.options import Options as ControllerOptions
from hyperjob_controller.options import parse as parse_controller
from hyperjob_install.rbac import CONTROLLER
from hyperjob_install.settings import account_user
from hyperjob_webhook.options import SETTINGS as WEBHOOK_SETTINGS
from hyperjob_webhook.options import Options as WebhookOptions
from hyperjob_webhook.options import parse as parse_webhook
from tests.support.helm import (
    CHART,
    MAJORS,
    NAMESPACE,
    containers,
    one,
    pods,
    run,
    template,
    unpack,
)
from tests.support.platforms import ALL_METRICS, PLATFORMS, POOL

pytestmark = pytest.mark.long

Object = dict[str, Any]
KUBERNETES = "1.37"
OTHERS = ("cert-manager.io/", "monitoring.coreos.com/", "route.openshift.io/")
VALUES: dict[str, Object] = {
    **PLATFORMS,
    "as it comes": {},
    "by cert-manager": {"certificates": {"mode": "certManager"}},
    "by an issuer of the house": {
        "certificates": {
            "mode": "certManager",
            "certManager": {"issuerRef": {"name": "house", "kind": "ClusterIssuer"}},
            "extraNames": ["hooks.example"],
        },
        "webhook": {"url": "https://10.0.0.7:9443"},
    },
    "with a certificate of one's own": {"certificates": {"mode": "secret", "secretName": "mine"}},
    "by an issuer that everybody trusts": {
        "certificates": {"mode": "certManager", "caKey": ""},
    },
    "with one that everybody trusts": {
        "certificates": {"mode": "secret", "secretName": "mine", "caKey": ""}
    },
    "everything of Prometheus": {"metrics": ALL_METRICS},
    "metrics for some": {
        "metrics": {**ALL_METRICS, "secure": True},
        "webhook": {"watchKarmada": False},
        "certificates": {"mode": "certManager", "caKey": "authorities.pem"},
    },
    "one pod each": {
        "webhook": {"replicas": 1},
        "controller": {
            "replicas": 1,
            "devices": ["example.com/npu:example.com/npu-memory", "e.io/x"],
        },
        "ui": {"enabled": True, "replicas": 1},
    },
    "by hand": {"setup": {"enabled": False}},
    "without webhooks": {
        "setup": {"skip": ["webhooks", "volcano-crds"], "allow": ["conflicts", "interpreters"]}
    },
    "with everything taken away": {"setup": {"uninstall": {"deleteCRDs": True, "force": True}}},
    "without network policies": {"networkPolicy": {"enabled": False}},
    "with narrow network policies": {
        "networkPolicy": {
            "webhookFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "egress": [{"ports": [{"port": 5443}]}],
        }
    },
    "placed": {"webhook": POOL, "controller": POOL, "podAnnotations": {"a": "b"}},
    "tuned": {
        "webhook": {
            "watchKarmada": False,
            "settings": {"tls-min-version": "VersionTLS13", "bind-address": "::"},
        },
        "controller": {
            "settings": {
                "gang-timeout": 600,
                "tenant-messages": "counts",
                "splitter-url": "https://splitter.example/split",
                "feature-gates": "ExternalSplitter=true",
                "splitter-token-file": "/etc/splitter/token",
            },
            "extraVolumes": [
                {
                    "name": "splitter",
                    "mountPath": "/etc/splitter",
                    "secret": {"secretName": "splitter"},
                }
            ],
        },
    },
    "from a registry": {
        "image": {
            "repository": "registry.example/hyperjob",
            "digest": "sha256:" + "a" * 64,
            "pullPolicy": "Always",
        },
        "fullnameOverride": "hj",
        "commonLabels": {"owner": "platform"},
    },
    "another Karmada": {
        "karmada": {
            "kubeconfigSecret": {"name": "admin", "key": "config"},
        },
        "controller": {"queueAdmission": "none"},
    },
    "with a web page": {"ui": {"enabled": True}},
    "with a web page for many": {
        "ui": {
            "enabled": True,
            "hosts": ["hyperjob.example.org", "hj.example.org:8443"],
            "readOnly": True,
            "service": {"type": "LoadBalancer", "annotations": {"a": "b"}},
            "nodeSelector": {"pool": "system"},
        },
        "networkPolicy": {"uiFrom": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}]},
    },
    "with queues of its own": {"controller": {"queueAdmission": "builtin"}},
}
REFUSED = {
    "a key that is not known": ({"webhok": {}}, "webhok"),
    "a number of pods that is a word": ({"webhook": {"replicas": "two"}}, "replicas"),
    "a URL without TLS": ({"webhook": {"url": "http://x"}}, "url"),
    "a mode that is not known": ({"certificates": {"mode": "acme"}}, "mode"),
    "a Secret of one's own without its name": ({"certificates": {"mode": "secret"}}, "secretName"),
    "a key of authorities that are the chart's own": ({"certificates": {"caKey": ""}}, "caKey"),
    "a part that is not known": ({"setup": {"skip": ["everything"]}}, "skip"),
    "no pod of a webhook that is registered": ({"webhook": {"replicas": 0}}, "replicas"),
    "a pull Secret without a name": ({"imagePullSecrets": ["pull"]}, "imagePullSecrets"),
    "a value of pods of another name": ({"setup": {"securityContext": {}}}, "securityContext"),
    "a digest that is none": ({"image": {"digest": "latest"}}, "digest"),
    "a setting that is not known": (
        {"controller": {"settings": {"gang-timout": 5}}},
        "gang-timout",
    ),
    "a setting that the chart makes": (
        {"webhook": {"settings": {"secure-port": 8443}}},
        "secure-port",
    ),
    "a host of the web page that is an address": (
        {"ui": {"enabled": True, "hosts": ["https://hj.example.org"]}},
        "hosts",
    ),
    "a setting out of range": ({"controller": {"settings": {"gang-timeout": 0}}}, "gang-timeout"),
}


@pytest.fixture(scope="module", params=MAJORS)
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(request.param, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="module")
def helms(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [unpack(major, tmp_path_factory.mktemp("helms")) for major in MAJORS]


@pytest.fixture(scope="module", params=VALUES, ids=str)
def rendered(request: pytest.FixtureRequest, helms: list[Path]) -> list[Object]:
    """Give what both render, which is the same."""
    old, new = (template(helm, VALUES[request.param]) for helm in helms)
    assert old == new
    return new


def test_helm_finds_nothing_to_say(helm: Path) -> None:
    done = run(helm, "lint", "--strict", CHART)
    assert "[WARNING]" not in done.stdout + done.stderr


def test_every_object_is_one_that_kubernetes_takes(rendered: list[Object]) -> None:
    for each in rendered:
        if not each["apiVersion"].startswith(OTHERS):
            kubernetes_validate.validate(each, KUBERNETES, strict=True)
        if each["metadata"]["name"] in ("ui", "hyperjob-more"):
            continue  # extraObjects are as their author wrote them
        namespace = None if each["kind"].startswith("ClusterRole") else NAMESPACE
        assert each["metadata"].get("namespace") == namespace, each["metadata"]["name"]
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "hyperjob"
    keys = [(each["kind"], each["metadata"]["name"]) for each in rendered]
    assert len(keys) == len(set(keys))


def test_no_right_reaches_beyond_the_namespace_and_its_own_secrets(rendered: list[Object]) -> None:
    wide = [e["metadata"]["name"] for e in rendered if e["kind"].startswith("Cluster")]
    assert set(wide) <= {"hyperjob-metrics-auth", "hyperjob-metrics-reader"}
    names = ("controller", "webhook", "certs", "ui", "members")
    secrets = {"-webhook-tls", *(f"-{name}-karmada" for name in names)}
    for role in (each for each in rendered if each["kind"] == "Role"):
        for rule in role["rules"]:
            assert (rule["apiGroups"], rule["resources"]) == ([""], ["secrets"])
            if rule["verbs"] != ["create"]:
                names = rule["resourceNames"]
                assert all(name.endswith(tuple(secrets)) for name in names)
                assert set(rule["verbs"]) <= {"get", "update", "delete"}


def test_every_pod_is_restricted(rendered: list[Object]) -> None:
    for _name, _labels, spec in pods(rendered):
        security = spec["securityContext"]
        assert security["runAsNonRoot"]
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["enableServiceLinks"] is False  # a Service's variables look like our flags'
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        assert {kind for volume in spec["volumes"] for kind in volume if kind != "name"} <= {
            *("secret", "projected", "emptyDir"),
        }
        for container in containers(spec):
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"]
            assert "memory" in container["resources"]["limits"]


def test_every_pod_finds_what_it_names(rendered: list[Object]) -> None:
    accounts = {e["metadata"]["name"] for e in rendered if e["kind"] == "ServiceAccount"}
    for name, _labels, spec in pods(rendered):
        assert spec["serviceAccountName"] in accounts, name
        volumes = {volume["name"] for volume in spec["volumes"]}
        mounted = {
            mount["name"]
            for container in containers(spec)
            for mount in container.get("volumeMounts", ())
        }
        assert mounted == volumes, name


def test_only_pods_with_rights_in_the_host_cluster_have_a_token(rendered: list[Object]) -> None:
    def bound(kind: str) -> set[str]:
        bindings = [each["subjects"] for each in rendered if each["kind"] == kind]
        return {subject["name"] for subjects in bindings for subject in subjects}

    for name, _labels, spec in pods(rendered):
        account = spec["serviceAccountName"]
        asks = account in bound("ClusterRoleBinding") and not name.endswith("-preflight")
        assert spec["automountServiceAccountToken"] is (account in bound("RoleBinding") or asks)


def test_secure_metrics_are_read_by_https_with_a_right(helms: list[Path]) -> None:
    plain = template(helms[-1], {"metrics": ALL_METRICS})
    assert not [each for each in plain if each["kind"].startswith("ClusterRole")]
    secure = template(helms[-1], VALUES["metrics for some"])
    asks = one(secure, "ClusterRole", "-metrics-auth")
    assert [(rule["resources"], rule["verbs"]) for rule in asks["rules"]] == [
        (["tokenreviews"], ["create"]),
        (["subjectaccessreviews"], ["create"]),
    ]
    accounts = one(secure, "ClusterRoleBinding", "-metrics-auth")["subjects"]
    assert [each["name"] for each in accounts] == ["hyperjob-webhook", "hyperjob-controller"]
    reads = one(secure, "ClusterRole", "-metrics-reader")
    assert reads["rules"] == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    for component in ("-webhook", "-controller"):
        (container,) = containers(one(secure, "Deployment", component)["spec"]["template"]["spec"])
        (flag,) = (word for word in container["args"] if word.startswith("--metrics-cert-dir="))
        (tls,) = (each for each in container["volumeMounts"] if each["name"] == "tls")
        assert flag == f"--metrics-cert-dir={tls['mountPath']}"
        (endpoint,) = one(secure, "ServiceMonitor", component)["spec"]["endpoints"]
        assert endpoint["scheme"] == "https"
        assert endpoint["tlsConfig"]["ca"]["secret"]["key"] == "authorities.pem"
        assert endpoint["tlsConfig"]["serverName"] == f"hyperjob-webhook.{NAMESPACE}.svc"
        assert "egress" in one(secure, "NetworkPolicy", component)["spec"], "to ask the API server"


def test_no_serving_pod_sees_a_key_that_signs_or_an_administrator(rendered: list[Object]) -> None:
    for deployment in (each for each in rendered if each["kind"] == "Deployment"):
        volumes = deployment["spec"]["template"]["spec"]["volumes"]
        assert not [volume for volume in volumes if "projected" in volume]
        secrets = {volume["name"]: volume["secret"] for volume in volumes if "secret" in volume}
        if tls := secrets.pop("tls", None):
            assert {item["key"] for item in tls["items"]} == {"tls.crt", "tls.key"}
        if karmada := secrets.pop("karmada", None):
            assert karmada["secretName"] == f"{deployment['metadata']['name']}-karmada"
        if members := secrets.pop("members", None):
            assert deployment["metadata"]["name"].endswith("-controller")
            assert members["secretName"].endswith("-members-karmada")
        assert set(secrets) <= {"splitter"}


def test_the_commands_understand_their_flags(rendered: list[Object], tmp_path: Path) -> None:
    (tmp_path / "ca.crt").touch()
    for _name, _labels, spec in pods(rendered):
        for container in containers(spec):
            (program,) = container["command"]
            words = [
                word.replace("/etc/hyperjob/authorities", str(tmp_path))
                for word in container["args"]
            ]
            match program:
                case "hyperjob-webhook":
                    parse_webhook(words)
                case "hyperjob-controller":
                    parse_controller(words)
                case "hyperjob-certs":
                    certs_parser().parse_args(words)
                case _:
                    understand(cli, words)


def test_settings_arrive_as_they_are_written(helms: list[Path]) -> None:
    objects = template(helms[-1], VALUES["tuned"])
    webhook, controller = (
        one(objects, "Deployment", suffix)["spec"]["template"]["spec"]["containers"][0]["args"]
        for suffix in ("-webhook", "-controller")
    )
    read = parse_webhook(webhook)
    assert (read.tls_min_version.name, read.bind_address) == ("TLSv1_3", "::")
    assert read.kubeconfig is None
    told = parse_controller(controller)
    assert (told.gang_timeout, told.tenant_messages) == (600, "counts")
    assert told.splitter_token_file == "/etc/splitter/token"


def test_only_the_controllers_own_account_opens_gates_unless_the_values_say_otherwise(
    helms: list[Path],
) -> None:
    def users(**values: Any) -> list[str]:
        webhook = one(template(helms[-1], values), "Deployment", "-webhook")
        arguments = webhook["spec"]["template"]["spec"]["containers"][0]["args"]
        flag = "--controller-users="
        return [word.removeprefix(flag) for word in arguments if word.startswith(flag)]

    assert users() == [account_user("karmada-system", CONTROLLER)]
    assert users(webhook={"settings": {"controller-users": "ann,bob"}}) == ["ann,bob"]
    assert users(webhook={"settings": {"controller-users": ""}}) == [""]


def refused(helm: Path, values: Object) -> str:
    """Give what Helm says about values that it refuses."""
    file = helm.parent / "refused.yaml"
    file.write_text(yaml.safe_dump(values))
    done = run(helm, "template", "x", CHART, f"--values={file}", check=False)
    assert done.returncode != 0
    return done.stderr


def test_tokens_live_three_days_and_are_renewed_every_six_hours(helms: list[Path]) -> None:
    objects = template(helms[-1], {})
    renewal = one(objects, "CronJob", "")["spec"]
    assert renewal["schedule"].split()[1:] == ["*/6", "*", "*", "*"]
    commands = [
        container["args"]
        for _name, _labels, spec in pods(objects)
        for container in containers(spec)
        if container["args"][:2] == ["credentials", "renew"]
    ]
    assert len(commands) > 1, "at the installation and again and again"
    assert all("--days=3" in words for words in commands)


@pytest.mark.parametrize(
    ("process", "kind", "known", "the_chart_makes"),
    [
        (
            "webhook",
            WebhookOptions,
            WEBHOOK_SETTINGS,
            (
                "kubeconfig secure_port tls_cert_file tls_private_key_file shutdown_delay"
                " health_probe_bind_address metrics_bind_address metrics_cert_dir"
            ),
        ),
        (
            "controller",
            ControllerOptions,
            CONTROLLER_SETTINGS,
            (
                "kubeconfig queue_admission leader_elect health_probe_bind_address"
                " metrics_bind_address metrics_cert_dir members members_kubeconfig devices"
            ),
        ),
    ],
)
def test_every_setting_of_a_process_is_the_charts_or_a_value(
    process: str, kind: type, known: Mapping[str, object], the_chart_makes: str
) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = schema["properties"][process]["properties"]["settings"]["properties"]
    left = {name for name in known if name not in the_chart_makes.split()}
    values = {name: schema for name, schema in values.items() if schema is not True}
    assert set(values) == {name.replace("_", "-") for name in left}
    text = reference.values((CHART / "values.yaml").read_text())
    (described,) = [value.text for value in text if value.path == f"{process}.settings"]
    assert described.partition("dashes: ")[2].split(", ") == sorted(values)
    defaults = {field.name: field.default for field in fields(kind)}
    types = {bool: "boolean", int: "integer", float: "number"}
    for name in left:
        wanted = types.get(type(defaults[name]), "string")
        given = values[name.replace("_", "-")]
        assert given.get("type", "string") == wanted, name


def understand(command: click.Command, words: list[str]) -> None:
    while isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(click.Context(command), name)
        assert found is not None, name
        command = found
    command.make_context("hyperjob", words)


def test_services_budgets_and_policies_select_their_pods(rendered: list[Object]) -> None:
    labels = [found for _name, found, _spec in pods(rendered)]

    def selects(selector: Object) -> bool:
        return any(selector.items() <= found.items() for found in labels)

    for each in rendered:
        spec = each.get("spec", {})
        if each["kind"] == "Service":
            assert selects(spec["selector"])
        elif each["kind"] in ("PodDisruptionBudget", "Deployment"):
            assert selects(spec["selector"]["matchLabels"])
        elif each["kind"] == "NetworkPolicy" and each["metadata"]["name"].endswith(
            ("webhook", "controller")
        ):
            assert selects(spec["podSelector"]["matchLabels"])
        elif each["kind"] == "ServiceMonitor":
            services = [e["metadata"]["labels"] for e in rendered if e["kind"] == "Service"]
            wanted = spec["selector"]["matchLabels"].items()
            assert sum(wanted <= found.items() for found in services) == 1


def test_hooks_come_in_the_right_order(helms: list[Path]) -> None:
    objects = template(helms[-1])
    hooks = {
        each["metadata"]["name"]: (
            notes["helm.sh/hook"],
            int(notes["helm.sh/hook-weight"]),
        )
        for each in objects
        if each["kind"] == "Job" and (notes := each["metadata"]["annotations"])
    }
    assert hooks == {
        "hyperjob-prepare": ("pre-install,pre-upgrade", -10),
        "hyperjob-register": ("post-install,post-upgrade", -10),
        "hyperjob-remove": ("pre-delete", -10),
        "hyperjob-remove-rest": ("post-delete", -10),
    }
    rights = [e for e in objects if e["kind"] == "Role" and "annotations" in e["metadata"]]
    assert [int(e["metadata"]["annotations"]["helm.sh/hook-weight"]) for e in rights] == [-20]
    order = [
        c["name"] for c in containers(one(objects, "Job", "-prepare")["spec"]["template"]["spec"])
    ]
    assert order == ["install", "certificates", "credentials"]


def test_a_certificate_of_the_house_covers_the_address_that_is_called(helms: list[Path]) -> None:
    objects = template(helms[-1], VALUES["by an issuer of the house"])
    certificate = one(objects, "Certificate")["spec"]
    assert certificate["ipAddresses"] == ["10.0.0.7"]
    assert "hooks.example" in certificate["dnsNames"]
    assert certificate["issuerRef"]["kind"] == "ClusterIssuer"


def test_one_pod_alone_has_no_budget_that_would_hold_a_node(helms: list[Path]) -> None:
    objects = template(helms[-1], VALUES["one pod each"])
    assert not [each for each in objects if each["kind"] == "PodDisruptionBudget"]


def test_a_rolling_upgrade_takes_no_pod_before_another_is_ready(helms: list[Path]) -> None:
    for suffix in ("-webhook", "-controller"):
        deployment = one(template(helms[-1]), "Deployment", suffix)["spec"]
        assert deployment["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
        spec = deployment["template"]["spec"]
        assert spec["terminationGracePeriodSeconds"] >= 30
        assert spec["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/readyz"


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_make_no_sense_are_refused(helm: Path, case: str) -> None:
    values, named = REFUSED[case]
    said = refused(helm, values)
    assert named in said
    assert "schema" in said


def test_the_chart_is_of_this_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == hyperjob.__version__


def test_the_page_of_values_is_current() -> None:
    page = CHART.parents[1] / "docs/reference/values.md"
    made = reference.page((CHART / "values.yaml").read_text())
    assert page.read_text() == made, "run: python -m charts.reference docs/reference/values.md"


def test_every_value_is_described_and_known_to_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    for value in reference.values((CHART / "values.yaml").read_text()):
        assert value.text, value.path
        node = schema
        for part in value.path.split("."):
            node = node["properties"][part]


def test_alerts_and_dashboard_arrive_as_their_files_say(helms: list[Path]) -> None:
    objects = template(helms[-1], VALUES["everything of Prometheus"])
    groups = [
        group
        for name in ("alerts", "records")
        for group in yaml.safe_load((CHART / f"files/{name}.yaml").read_text())["groups"]
    ]
    assert one(objects, "PrometheusRule")["spec"] == {"groups": groups}
    dashboard = one(objects, "ConfigMap", "-dashboard")["data"]["hyperjob.json"]
    assert json.loads(dashboard) == json.loads((CHART / "files/dashboard.json").read_text())


def documented_values() -> list[Any]:
    page = (Path(__file__).parents[2] / "docs/install.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    sections = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    found = [yaml.safe_load(block) for block in blocks]
    return [each for each in found if set(each) <= set(sections)]


@pytest.mark.parametrize("values", documented_values(), ids=lambda values: " ".join(values))
def test_values_in_the_documentation_are_accepted(helms: list[Path], values: Object) -> None:
    for helm in helms:
        assert template(helm, values)
