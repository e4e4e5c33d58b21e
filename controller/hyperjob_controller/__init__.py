"""The controller: it expands HyperJobs, places and gates their sub-jobs, and writes their status.

A pass is: learn, observe, plan, apply, one status write, Events. The state that must survive a
restart is in the API server. `hyperjob_controller.memory` describes the other state.
"""
