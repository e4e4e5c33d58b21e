"""Logs, metrics and health checks of the processes.

The package must not import the Kubernetes client or `hyperjob_core.kube`: the webhook uses it to
decide without an API call.
"""
