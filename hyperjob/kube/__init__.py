"""Access to a Kubernetes API server: what client-go is to Go, asynchronous and on plain dicts.

Objects go in and come out as the API server's own JSON, so nothing that this release does not
know is ever lost. It must never import what is built on it, nor the telemetry beside it: its
caller hands the metrics in (`hyperjob.kube.instruments`).
"""
