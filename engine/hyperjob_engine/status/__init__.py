"""The status and the Events of a HyperJob, from the observed objects and the plan. Pure.

Equal input gives an equal status, byte for byte: a time changes only with the state that it is of.
"""
