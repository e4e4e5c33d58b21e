"""What becomes of one HyperJob: decisions on its sub-jobs, clusters and status.

Every module here is pure: it gets the time and the state of the clusters as arguments, makes no
request and reads no clock. `hyperjob_controller` and `hyperjob plan` run these decisions.
"""
