"""Static word vectors, one a word: one-hot, skip-gram, GloVe, their files and how good they are."""
