"""The calls to an external splitter: an HTTP service of the user that shares out accelerators.

`hyperjob_engine.splitting` has the question and the checks of the answer.
"""
