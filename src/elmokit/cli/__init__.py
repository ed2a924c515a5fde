"""The command line: one file per group of commands, and the only place that prints."""

import logging
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from elmokit import __version__
from elmokit.cli.bench import bench
from elmokit.cli.concordance import collocations, concordance, keyness
from elmokit.cli.demo import demo
from elmokit.cli.embed import embed
from elmokit.cli.export_page import export_page
from elmokit.cli.index import index
from elmokit.cli.models import convert, info, models, push
from elmokit.cli.neighbors import neighbors, similarity
from elmokit.cli.predictions import substitutes, surprisal
from elmokit.cli.pretrain import finetune, perplexity, pretrain
from elmokit.cli.senses import senses
from elmokit.cli.serve import serve
from elmokit.cli.shards import COMMAND_LINE
from elmokit.cli.shift import shift
from elmokit.cli.static import static
from elmokit.cli.task import task
from elmokit.errors import ElmoError
from elmokit.translation import in_chinese, translate

if TYPE_CHECKING:
    from cyclopts.help.protocols import HelpFormatter

app = App(
    name="elmokit",
    help="Contextual word vectors from ELMo models: load any, embed any text, exact and fast.",
    version=__version__,
    result_action="return_none",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(negative_iterable=()),
)
app.register_install_completion_command()
COMMANDS = (
    *(demo, embed, models, info, convert, push, pretrain, finetune, perplexity),
    *(static, neighbors, similarity, concordance, collocations, keyness, senses, substitutes, surprisal),
    *(shift, index, task, serve, export_page, bench),
)
for command in COMMANDS:
    app.command(command)


class _Lines(logging.Handler):
    """What the library has to tell, a line each, such as how a download goes."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line to where errors go at this moment."""
        text = record.getMessage()
        server = record.name.startswith("elmokit.serve")  # whose log is for machines too
        print(text if server else translate(text), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command: exit code 2 and one sentence for a mistake, 130 after Ctrl-C."""
    if isinstance(sys.stdout, TextIOWrapper):  # what a terminal lacks is shown by its number
        sys.stdout.reconfigure(errors="backslashreplace")
    app.help_formatter = _help()
    logger, lines = logging.getLogger("elmokit"), _Lines()
    logger.setLevel(logging.INFO)
    logger.addHandler(lines)
    COMMAND_LINE.set(sys.argv[1:] if arguments is None else arguments)
    try:
        app(arguments, exit_on_error=False, print_error=False)
    except UnusedCliTokensError as error:
        command = " ".join(("elmokit", *(error.command_chain or ())))
        _leave(f"{' '.join(error.unused_tokens or ())}: {command} takes no such argument: see {command} --help", 2)
    except (ElmoError, CycloptsError) as error:
        _leave(str(error), 2)
    except KeyboardInterrupt:
        _leave("interrupted; nothing half-written is left", 130)
    except BrokenPipeError:  # the reader of our output has gone, as with `| head`
        sys.stderr.close()
        sys.exit(141)
    finally:
        logger.removeHandler(lines)


def _help() -> "HelpFormatter | None":
    """What shows help: cyclopts' own, unless it is to be translated."""
    if not in_chinese():
        return None
    from elmokit.cli.help import TranslatedHelp

    return TranslatedHelp()


def _leave(message: str, code: int) -> None:
    print(f"elmokit: {translate(message)}", file=sys.stderr)
    sys.exit(code)
