"""Text to sentences, tokens, ids and batches."""
