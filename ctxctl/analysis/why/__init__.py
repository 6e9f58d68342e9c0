"""Why an item is, or is not, in the window of a step; what it costs; and what would have to be otherwise."""
