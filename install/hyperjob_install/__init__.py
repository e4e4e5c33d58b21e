"""Apply, delete and check the objects that HyperJob needs in the Karmada API server.

Pure builders return the objects; `plan` compares them with the API server, and `execute` writes
the differences; `remove` deletes the objects; `preflight` reports missing objects with a remedy.
The package neither prints nor exits. It writes to the host cluster only the Secrets of
`credentials`: the Helm chart installs everything else there.
"""
