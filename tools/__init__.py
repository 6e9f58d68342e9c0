"""Programs that are not tests: they measure, load, damage and compare ctxctl; `make` runs most of them."""
