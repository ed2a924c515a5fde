"""Words with their senses in the files of Raganato et al. (2017): XML, gold keys, and the senses that WordNet has."""

from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from elmokit.errors import DataError
from elmokit.tasks.examples import Place, SenseInstance, SenseSentence
from elmokit.tasks.readers.lines import expecting, fields, read_bytes, read_lines

POS = ("NOUN", "VERB", "ADJ", "ADV")
Inventory = dict[tuple[str, str], tuple[str, ...]]
BYTES_AT_A_TIME = 1 << 16
LONGEST_TEXT = 1 << 16  # characters of a word or an id
LONGEST_SENTENCE = 1 << 16  # tokens
WORDS = ("wf", "instance")
_PARENTS = {"corpus": "", "text": "corpus", "sentence": "text", "wf": "sentence", "instance": "sentence"}


@expecting("sentences in <corpus>, <text> and <sentence>")
def read_senses(path: Path, keys: Path | None = None) -> Iterator[SenseSentence]:
    """The sentences, with the gold senses of their words from a file of keys if there is one."""
    parser = _Parser(path, keys)
    for content in read_bytes(path, BYTES_AT_A_TIME, recode=False):  # XML says its encoding itself
        yield from parser.feed(content)
    yield from parser.feed(b"", last=True)
    for instance, (_, place) in parser.gold.items():
        raise place.error(f"the instance {instance!r} does not stand in {path}")


def read_keys(path: Path) -> dict[str, tuple[tuple[str, ...], Place]]:
    """The sense keys of each instance, one per line: its id and its keys."""
    keys: dict[str, tuple[tuple[str, ...], Place]] = {}
    for line in read_lines(path):
        instance, *senses = fields(line) or [""]
        if instance and not senses:
            raise line.place.error(f"found {line.text!r}: expected an id and at least one sense key")
        if instance in keys:
            raise line.place.error(f"the instance {instance!r} was in line {keys[instance][1].line} already")
        if instance:
            keys[instance] = tuple(senses), line.place
    return keys


def read_inventory(path: Path) -> Inventory:
    """The senses of each lemma and part of speech, most frequent first: lemma, part of speech and keys, by tabs."""
    inventory: Inventory = {}
    for line in read_lines(path, blank=False):
        cells = line.text.split("\t")
        if len(cells) != 3 or cells[1] not in POS or not cells[2].strip():
            expected = f"expected a lemma, one of {', '.join(POS)} and sense keys"
            raise line.place.error(f"found {line.text[:60]!r}: {expected}")
        inventory[cells[0], cells[1]] = tuple(cells[2].split())
    if not inventory:
        raise DataError(f"{path}: there are no senses in it")
    return inventory


class _Parser:
    """Sentences from XML as it is fed; it refuses to define entities, so that none can be expanded."""

    def __init__(self, path: Path, keys: Path | None) -> None:
        self.path, self.keys = str(path), keys
        self.gold = read_keys(keys) if keys else {}  # what is left of it
        self.open: list[str] = []
        self.done: list[SenseSentence] = []
        self.expat = expat.ParserCreate()
        self.expat.buffer_text = True
        self.expat.EntityDeclHandler = self._refuse_entity
        self.expat.StartElementHandler = self._start
        self.expat.EndElementHandler = self._end
        self.expat.CharacterDataHandler = self._characters

    @property
    def place(self) -> Place:
        return Place(self.path, self.expat.CurrentLineNumber)

    def feed(self, content: bytes, *, last: bool = False) -> list[SenseSentence]:
        """The sentences that end in the next bytes."""
        try:
            self.expat.Parse(content, last)
        except DataError:  # of a handler below
            raise
        except expat.ExpatError as error:
            raise Place(self.path, error.lineno).error(f"not XML: {expat.ErrorString(error.code)}") from None
        except (LookupError, ValueError) as error:
            raise self.place.error(f"its encoding cannot be read: {error}. Save it as UTF-8") from None
        done, self.done = self.done, []
        return done

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise self.place.error(f"the XML defines an entity, {name!r}: expected none")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        parent = self.open[-1] if self.open else ""
        if _PARENTS.get(name) != parent:
            allowed = [f"<{child}>" for child, its_parent in _PARENTS.items() if its_parent == parent]
            raise self.place.error(f"found <{name}>: expected {' or '.join(allowed) or 'no element'} here")
        self.open.append(name)
        self.attributes, self.text = attributes, ""
        if name == "sentence":
            self.tokens: list[str] = []
            self.instances: list[SenseInstance] = []
            self.begun = self.place

    def _characters(self, text: str) -> None:
        self.text += text
        if self.open[-1] not in WORDS and text.strip():
            raise self.place.error(f"found the text {text.strip()[:60]!r}: expected it within <wf> or <instance>")
        if len(self.text) > LONGEST_TEXT:
            raise self.place.error(f"more than {LONGEST_TEXT:,} characters in one <{self.open[-1]}>: expected a word")

    def _end(self, name: str) -> None:
        self.open.pop()
        if name == "sentence":
            self.done.append(SenseSentence(tuple(self.tokens), tuple(self.instances), self.begun))
        elif name in WORDS:
            start = len(self.tokens)
            self.tokens += [word for word in self.text.strip().split(" ") if word]
            if not start < len(self.tokens) <= LONGEST_SENTENCE:
                expected = f"or more than {LONGEST_SENTENCE:,} in a sentence: expected a word"
                raise self.place.error(f"an empty word, {expected}")
            if name == "instance":
                self._add_instance(start)
        self.text = ""

    def _add_instance(self, start: int) -> None:
        if missing := {"id", "lemma", "pos"} - set(self.attributes):
            raise self.place.error(f"the instance has no {' and no '.join(sorted(missing))}")
        name, lemma, pos = (self.attributes[attribute] for attribute in ("id", "lemma", "pos"))
        if pos not in POS:
            raise self.place.error(f"the instance {name!r} has pos {pos!r}: expected {', '.join(POS)}")
        if self.keys and name not in self.gold:
            raise self.place.error(
                f"the instance {name!r} has no line of its own in {self.keys}: expected its gold key"
            )
        keys = self.gold.pop(name)[0] if self.keys else ()
        self.instances.append(SenseInstance(name, lemma, pos, start, len(self.tokens), keys))
