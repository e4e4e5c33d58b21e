"""The steps of a plan, in the order of `hyperjob_engine.plan`: each adds its result to the draft."""
