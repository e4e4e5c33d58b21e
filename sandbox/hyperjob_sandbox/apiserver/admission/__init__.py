"""Admission: the namespace's state and the registered webhooks."""
