"""The steps of a plan, in the order of `controller.plan`: each adds its result to the draft."""
