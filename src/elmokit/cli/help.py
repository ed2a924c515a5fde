"""Help in the reader's language: what cyclopts has made of docstrings, translated as it is shown."""

import re
from typing import Any

from cyclopts.help import HelpPanel, InlineText
from cyclopts.help.formatters import DefaultFormatter
from rich import _wrap
from rich.console import Console, ConsoleOptions
from rich.markdown import Markdown
from rich.text import Text

from elmokit.translation import translate

HAN = r"[\u3000-\u9fff\uff00-\uffef]"
CLOSING = r"[，。；：、！？）】”]"
# rich breaks lines between words: a Han character is one, with the punctuation that must not be apart from it
_wrap.re_word = re.compile(rf"\s*[（【“]*(?:\[\S+|{HAN}|(?:(?!{HAN})[^\s（“])+){CLOSING}*\s*")


class TranslatedHelp(DefaultFormatter):
    """The usual help, paragraph by paragraph in another language."""

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """How the command is written."""
        console.print(Text(f"{translate('Usage: ')}{usage}", style="bold"), width=options.max_width)

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:
        """What the command does."""
        super().render_description(console, options, _translated(description))

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """A frame of commands or options."""
        entries = [entry.copy(description=_translated(entry.description)) for entry in panel.entries]
        super().__call__(console, options, panel.copy(title=translate(str(panel.title)), entries=entries))


class _Description(InlineText):
    """A description that goes on with what is chosen by default, and the like."""

    def append(self, text: Text) -> None:
        super().append(Text(translate(text.plain), style=text.style))


def _translated(description: Any) -> Any:
    source = getattr(description, "primary_renderable", None)
    if not isinstance(source, Markdown):
        return description
    paragraphs = map(translate, re.split(r"\n\s*\n", source.markup.strip()))
    return _Description(Markdown("\n\n".join(paragraphs)), force_empty_end=description.force_empty_end)
