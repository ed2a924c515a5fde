"""The texts that people read, found in the source: what a catalogue of translations has to have.

`python tests/texts.py` prints those without a translation, to be put into the catalogue.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from io import StringIO
from itertools import count
from pathlib import Path

from cyclopts import App
from cyclopts.help.formatters import DefaultFormatter
from rich.console import Console
from rich.markdown import Markdown

from elmokit.cli import app, demo_page
from elmokit.cli.demo import SAME_OR_NOT, read_lessons
from elmokit.translation import find_translation

SOURCE = Path(__file__).parents[1] / "src" / "elmokit"
ERRORS = "cli text lexicon errors.py files.py checkpoints/__init__.py pretrain/run.py pretrain/recipe.py".split()
ERRORS += "pretrain/corpus.py tasks/training.py tasks/task.py".split()  # whose errors have translations
NOT_FOR_PEOPLE = "serve integrations".split()  # a server's log and errors are read by machines too
BY_CYCLOPTS = """\
[choices: {0}]
[default: {0}]
[env var: {0}]
[required]
Usage:
Example: {0}
Unknown command "{0}".
Unknown command "{0}". Available commands: {1}.
Unknown command "{0}". Available commands: {1}, ...
Unknown command "{0}". Did you mean "{1}"? Available commands: {2}, ...
Unknown option: {0}.
Unknown option: {0}. Did you mean {1}?
Command "{0}" parameter {1} requires an argument.
Invalid value "{0}" for {1}. Must be {2}.
Invalid value "{0}" for {1}. Choose from: {2}.
Invalid value "{0}" for {1}. Choose from: {2}. Did you mean "{3}"?
Invalid value for {0}: unable to convert "{1}" into {2}.""".splitlines()
NUMBERED = re.compile(r"(\w{,6} )?\{0\}( \w+)?")  # such as layer {n}
FEWEST_LETTERS = 6  # of a text with {0}; a shorter one would be found in others
ABOUT = ["text", "tokens read", "date", "perplexity"]  # what a run says of its model
SAME = ["elmokit {0}", "-s column="]  # in every language
COUNTED = ["group", "sense"]  # lexicon.senses counts either


def normal(text: str) -> str:
    return " ".join(text.split())


class Module:
    """A file of source, and the texts that its expressions can come to."""

    def __init__(self, path: Path) -> None:
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.assigned: dict[str, list[ast.expr]] = defaultdict(list)
        self.returned: dict[str, list[ast.expr]] = defaultdict(list)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.assigned[node.targets[0].id].append(node.value)
            elif isinstance(node, ast.FunctionDef):
                returns = (found.value for found in ast.walk(node) if isinstance(found, ast.Return) and found.value)
                self.returned[node.name].extend(returns)

    def texts(self, node: ast.expr, depth: int = 4) -> Iterator[str]:
        """What an expression can come to, with {0}, {1} … for what varies; texts within a text follow it."""
        if depth == 0:  # a name that is made of itself
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            numbers = count()
            yield normal(re.sub(r"%(s|\.\df)", lambda _: f"{{{next(numbers)}}}", node.value))
        elif isinstance(node, ast.IfExp):
            yield from (*self.texts(node.body, depth), *self.texts(node.orelse, depth))
        elif isinstance(node, ast.Subscript):
            yield from self.texts(node.value, depth)
        elif isinstance(node, ast.Dict):
            yield from (text for value in node.values for text in self.texts(value, depth - 1))
        elif isinstance(node, ast.Name):
            yield from (text for value in self.assigned[node.id] for text in self.texts(value, depth - 1))
        elif isinstance(node, ast.Call):
            yield from (text for value in self.returned[called(node)] for text in self.texts(value, depth - 1))
        elif isinstance(node, ast.JoinedStr):
            yield self.pattern(node)
            inner = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            yield from (text for value in inner for text in self.texts(value, depth) if " " in text)

    def pattern(self, node: ast.JoinedStr) -> str:
        numbers = count()
        parts = []
        for part in node.values:
            thing = counted(part.value) if isinstance(part, ast.FormattedValue) else ""
            place = part.value if isinstance(part, ast.Constant) else f"{{{next(numbers)}}}"
            parts.append(f"{place} {thing}s" if thing else str(place))
        found = normal("".join(parts))
        return found.replace("{0}", "{n}") if NUMBERED.fullmatch(found) else found


def called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def counted(node: ast.expr) -> str:
    """The thing that a call of `counted` counts."""
    known = isinstance(node, ast.Call) and called(node) == "counted" and isinstance(node.args[1], ast.Constant)
    return str(node.args[1].value) if known else ""


def shown(node: ast.AST) -> Iterator[ast.expr]:
    """The arguments of a call that people will read."""
    if isinstance(node, ast.Call) and node.args:
        logs = called(node) in ("info", "warning") and ast.unparse(node.func).startswith("logger.")
        if logs or called(node) in ("translate", "message", "_row", "_head", "_leave"):
            yield node.args[0]
        elif called(node) == "_figure":
            yield node.args[1]
        elif called(node) == "map" and ast.unparse(node.args[0]) == "translate":
            yield from getattr(node.args[1], "elts", ())
        elif called(node) in ("update", "tracked"):
            yield from (argument for argument in node.args if isinstance(argument, ast.Constant))
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "note")


def source_texts() -> Iterator[str]:
    """The texts of progress, notices, tables and errors."""
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if name.startswith(tuple(NOT_FOR_PEOPLE)):
            continue
        module = Module(path)
        for node in ast.walk(module.tree):
            yield from (text for argument in shown(node) for text in module.texts(argument))
            if isinstance(node, ast.Call):
                if name == "errors.py" and called(node) == "__init__":
                    yield from module.texts(node.args[0])
                yield from (f"{{n}} {ending}" for ending in things(node))
            raised = isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and name.startswith(tuple(ERRORS))
            if raised and node.exc.args:
                yield from module.texts(node.exc.args[0])


def things(node: ast.Call) -> Iterator[str]:
    """What is counted: by `counted`, or as the unit of progress."""
    if thing := counted(node):
        yield from (thing, f"{thing}s")
    yield from (str(word.value.value) for word in node.keywords if word.arg == "unit" and hasattr(word.value, "value"))


class Collector(DefaultFormatter):
    """Keeps what help would show."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def render_usage(self, console, options, usage) -> None: ...

    def render_description(self, console, options, description) -> None:
        self.keep(description)

    def __call__(self, console, options, panel) -> None:
        self.texts.append(panel.title)
        for entry in panel.entries:
            self.keep(entry.description)

    def keep(self, description) -> None:
        if isinstance(getattr(description, "primary_renderable", None), Markdown):
            self.texts += re.split(r"\n\s*\n", description.primary_renderable.markup)


def help_texts() -> Iterator[str]:
    """The texts of every page of help."""
    collector = Collector()
    before, app.help_formatter = app.help_formatter, collector

    def walk(command: App, names: list[str]) -> None:
        app.help_print(names, console=Console(file=StringIO()))
        for name in command:
            if not name.startswith("-"):
                walk(command[name], [*names, name])

    walk(app, [])
    app.help_formatter = before
    return (text for text in map(normal, collector.texts) if text and not text.startswith("Example:"))


def demo_texts() -> Iterator[str]:
    """The texts of the demo and its page that no call names."""
    page = demo_page.PAGE.read_text(encoding="utf-8")
    yield from (normal(found[2]) for found in demo_page.TEXT.findall(page))
    yield from (lesson["title"] for lesson in read_lessons().values())
    yield from (*SAME_OR_NOT, "static", "static, layer 0", "layer {n}")


def facts() -> Iterator[str]:
    """What `elmokit info` says of a model."""
    module = Module(SOURCE / "checkpoints" / "cards.py")
    for node in ast.walk(next(one for one in module.tree.body if getattr(one, "name", "") == "facts")):
        if isinstance(node, ast.Dict):
            yield from (text for part in (*node.keys, *node.values) for text in module.texts(part))


def has_translation(text: str) -> bool:
    """Whether the catalogue knows it, as it is or as one in which something varies."""
    return find_translation(text) is not None


def all_texts() -> list[str]:
    """Each once."""
    counts = [f"{{n}} {thing}{ending}" for thing in COUNTED for ending in ("", "s")]
    found = dict.fromkeys(
        [*BY_CYCLOPTS, *counts, *help_texts(), *demo_texts(), *facts(), *ABOUT, "format", *source_texts()]
    )
    letters = {text: len(re.findall("[A-Za-z]", re.sub(r"\{.*?\}", "", text))) for text in found}
    fewest = {text: FEWEST_LETTERS if "{0}" in text else "{" in text for text in found}
    return [text for text in found if text and letters[text] >= fewest[text] and text not in SAME]


if __name__ == "__main__":
    for text in all_texts():
        if not has_translation(text):
            print(f"msgid {text!r}")
