"""Text to sentences, tokens, ids and batches."""

BOS, EOS, UNK = "<S>", "</S>", "<UNK>"  # what stands before and after a sentence, and for a word that is not known
