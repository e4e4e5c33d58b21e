"""The Helm chart, and the page of its values."""
