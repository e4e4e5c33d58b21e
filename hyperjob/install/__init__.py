"""What belongs into the Karmada API server: applied, taken away, and looked over.

Builders make the objects, plain and pure; `plan` finds out what differs and `execute` carries it
out; `remove` takes it away; `preflight` says what is missing and the remedy. Nothing here prints
or exits, and nothing touches the host cluster: that is the chart's.
"""
