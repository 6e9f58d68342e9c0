"""A budget's estimate and findings in each form that they are asked for."""
