"""IDS → LAYERS → MIX: the arithmetic of the bidirectional language model."""
