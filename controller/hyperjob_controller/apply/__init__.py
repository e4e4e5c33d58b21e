"""The API calls of the actions of a plan.

`applier` makes the calls of different sub-jobs in parallel and reports the result of each;
`exports` makes and removes the ServiceExport of a sub-job.
"""
