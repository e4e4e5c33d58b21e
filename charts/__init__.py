"""The Helm chart, and the generator of docs/reference/values.md."""
