"""The gang of a HyperJob: the gate that holds it until it is complete, its review, its back-off.

Pure: the time is an input, and the state of a gang is in the HyperJob's status.
"""
