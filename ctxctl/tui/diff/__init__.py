"""Two frames held against each other: values, how they are gathered, their state, and their lines."""
