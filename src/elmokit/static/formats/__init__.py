"""Static vectors on disk, one file a format, none knows another: read(path) and write(path, words, vectors)."""
