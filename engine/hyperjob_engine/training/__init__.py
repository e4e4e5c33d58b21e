"""The progress of a training: the lines that its program prints, and what a pass keeps of them."""
