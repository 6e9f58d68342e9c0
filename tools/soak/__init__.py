"""Long runs under load: descriptors, memory and lag over time (`make soak`)."""
