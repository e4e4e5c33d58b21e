"""The controller: expands HyperJobs, places and gates their sub-jobs, and tells how they are.

learn → observe → plan → apply → one status write → events. What must outlive the process is in the
API server; `controller.memory` says what is remembered beside it, and why losing that is harmless.
"""
