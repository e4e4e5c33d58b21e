"""Values of the drawings over time: their axis, the timeline of a HyperJob, areas of use. Pure."""
