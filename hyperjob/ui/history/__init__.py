"""What was: phases, attempts, places and use over time, in a bounded file of its own."""
