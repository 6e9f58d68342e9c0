"""Why an item is, or is not, in a step's window; its cost; and what would change that."""
