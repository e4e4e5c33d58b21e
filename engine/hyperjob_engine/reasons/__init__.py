"""Why a HyperJob or a sub-job is as it is: codes, numbers and sentences, a file for each topic.

Decisions construct and compare the codes; only `hyperjob_engine.status` and what a person reads
render the sentences, and no code parses them.
"""
