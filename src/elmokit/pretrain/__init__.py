"""From a corpus to shards, streams, steps, a checkpoint and its perplexity."""
