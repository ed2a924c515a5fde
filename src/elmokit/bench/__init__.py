"""How fast models run on this machine: real sentences, contestants that take turns, ratios to compare."""
