"""An embedded Kubernetes API server: HTTP, TLS, discovery, watches, validation, in memory."""
