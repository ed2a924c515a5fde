"""The study of words: neighbours, senses, substitutes, change, and the searchable index of occurrences."""
