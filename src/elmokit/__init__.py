"""elmokit: contextual word vectors from ELMo models, exact and fast."""
