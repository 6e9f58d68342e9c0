"""Will it fit before it is deployed: a plan of parts and of a conversation, measured and simulated."""
