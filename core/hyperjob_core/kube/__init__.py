"""The asynchronous Kubernetes client, on plain dicts: the counterpart of Go's client-go.

Objects are the API server's own JSON: fields that this release does not know stay. The package
imports none of the programs that use it.
"""
