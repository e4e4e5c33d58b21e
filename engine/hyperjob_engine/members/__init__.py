"""What the controller knows of its members: a fold of lists and watches into values. Pure."""
