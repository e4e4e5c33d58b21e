"""The controller: expands HyperJobs, places and gates their sub-jobs, and tells how they are.

observe → plan → apply → one status write → events. State lives in the API server alone.
"""
