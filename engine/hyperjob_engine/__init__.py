"""What becomes of a HyperJob: decisions on its sub-jobs, clusters, queue and status.

Every module here is pure: it gets the time and the state of the clusters as arguments, makes no
request and reads no clock. `hyperjob_controller` and `hyperjob plan` run these decisions.
"""
