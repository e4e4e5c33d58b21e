"""`hyperjob simulate`: the controller as it runs, on virtual time, clusters and queues in memory.

`engine` runs a `workload.Scenario` and gives a `history.History`; `measure` says what it means;
`policies` changes a scenario so that policies can be compared. `plane`, `karmada`, `member` and
`world` stand for everything around the controller: they copy none of its rules.
"""
