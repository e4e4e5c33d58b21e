"""Validation of a HyperJob: all errors that would occur later, at once, in Kubernetes' wording.

Pure and total: the result for any JSON object is a decision, without exceptions and without I/O.
"""
