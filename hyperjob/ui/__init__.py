"""The web page: clusters, queues and HyperJobs, live.

Informers bring what is there; views are pure functions of it; templates turn views into HTML; the
browser gets parts of a page anew when they change. All facts come from the functions of the command
line and of the status.
"""
