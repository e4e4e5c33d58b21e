"""The life of a HyperJob: its end, restarts and moves, dependencies, planned stops, lost clusters.

Pure: functions of the observed objects and the time in them.
"""
