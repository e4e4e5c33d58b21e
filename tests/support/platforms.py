"""Values of the chart for platforms of others."""

from typing import Any, Final

Object = dict[str, Any]

ALL_METRICS: Final[Object] = {
    "labels": {"release": "prometheus"},
    "serviceMonitor": {"enabled": True},
    "prometheusRule": {"enabled": True},
    "dashboard": {"enabled": True},
}
POOL: Final[Object] = {
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "pool", "value": "system", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {}},
}
EVERYWHERE: Final[Object] = {
    **POOL,
    "priorityClassName": "platform",
    "imagePullSecrets": [{"name": "pull"}],
    "podAnnotations": {"sidecar.istio.io/inject": "false"},
    "podLabels": {"team": "platform"},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "podSecurityContext": {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
        "fsGroup": 2000,
    },
}
"""Values of all pods."""
PLATFORMS: Final[dict[str, Object]] = {
    "OpenShift": {
        "ui": {"enabled": True, "hosts": ["hyperjob.apps.example.org"]},
        "extraObjects": [
            {
                "apiVersion": "route.openshift.io/v1",
                "kind": "Route",
                "metadata": {"name": "ui"},
                "spec": {"to": {"kind": "Service", "name": "hyperjob-ui"}},
            }
        ],
    },
    "GKE": {
        "ui": {
            "enabled": True,
            "hosts": ["hyperjob.example.org:443"],
            "ingress": {
                "enabled": True,
                "className": "gce",
                "annotations": {"kubernetes.io/ingress.allow-http": "false"},
                "tls": [{"hosts": ["hyperjob.example.org"], "secretName": "ui"}],
            },
        },
        "metrics": {
            "serviceMonitor": {
                "enabled": True,
                "interval": "30s",
                "scrapeTimeout": "10s",
                "relabelings": [{"targetLabel": "cluster", "replacement": "karmada"}],
                "metricRelabelings": [{"action": "labeldrop", "regex": "pod"}],
            }
        },
    },
    "a cluster of IPv6 alone": {
        "webhook": {"url": "https://[fd00::7]:9443"},
        "networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "fd00::/8"}}]}]},
        "ui": {"enabled": True},
    },
    "a tainted pool": {**EVERYWHERE, "ui": {"enabled": True}, "metrics": ALL_METRICS},
    "a registry without a way out": {
        "global": {
            "imageRegistry": "registry.internal:5000/mirror",
            "imagePullSecrets": [{"name": "internal"}],
            "others": 1,
        },
        "image": {"repository": "hyperjob", "digest": "sha256:" + "b" * 64},
        "imagePullSecrets": [{"name": "pull"}],
        "revisionHistoryLimit": 2,
        "extraObjects": [
            'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "{{ .Release.Name }}-more"}\n'
        ],
    },
}
