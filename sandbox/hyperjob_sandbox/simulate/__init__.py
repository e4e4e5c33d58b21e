"""`hyperjob simulate`: the controller's own code on virtual time, with clusters in memory.

`engine` runs a `workload.Scenario` and returns a `history.History`; `measure` makes a report of
it; `policies` changes a scenario for the comparison of policies. `karmada`, `member` and `world`
simulate everything around the controller on an API server in memory, and have none of its rules.
"""
