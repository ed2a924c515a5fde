"""How the Penn Treebank writes words that its brackets would clash with."""

_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}


def unescape(word: str) -> str:
    """The word as it is read elsewhere: "-LRB-" is "(" and "and\\/or" is "and/or"."""
    return _BRACKETS.get(word, word).replace("\\/", "/").replace("\\*", "*")
