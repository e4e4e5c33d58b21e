"""Wire types and the pure rules of Kubernetes; it does no I/O and knows no clock."""
