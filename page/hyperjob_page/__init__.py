"""The web page of clusters, queues and HyperJobs, which updates itself.

Informers keep the objects; views are pure functions of the objects; templates turn views into
HTML; the server sends parts of a page again when they change. All facts come from the functions of
the command line and from the status.
"""
