"""The steps of the plan, which `controller.plan` numbers: each adds to the draft what it finds."""
