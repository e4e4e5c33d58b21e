"""Certificates of the webhook: issued, rotated, stored, served; it knows no HyperJob."""
