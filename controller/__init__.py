"""The controller: expands HyperJobs, places and gates their sub-jobs, and writes their status.

learn → observe → plan → apply → one status write → events. What must outlive the process is in the
API server; `controller.memory` says what is remembered beside it, and why losing that is harmless.
"""
