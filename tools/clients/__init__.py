"""Real clients behind `ctxctl record`: what they send, what is recorded, and whether they notice."""
