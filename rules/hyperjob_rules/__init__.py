"""What admission decides: errors of HyperJobs, the stamp on their ResourceBindings.

Every module here is pure: it makes no request and reads no clock. `hyperjob_webhook` and
`hyperjob lint` run these rules.
"""
