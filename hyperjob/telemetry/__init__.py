"""Logs, metrics and health: what an operator of the processes sees.

It must import neither the Kubernetes client nor `hyperjob.kube`: the webhook uses it and makes no
API call.
"""
