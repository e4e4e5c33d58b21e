"""The steps of a plan, in the order of `hyperjob_engine.plan`; each writes into the draft."""
