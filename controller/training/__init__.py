"""Reads how far trainings are from the logs of their pods, through Karmada's cluster proxy.

Off unless it is asked for. It never writes: what it learns is memory that a pass observes.
"""
