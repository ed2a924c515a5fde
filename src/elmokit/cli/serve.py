"""`elmokit serve`: models, corpora and trained tasks over HTTP, and the page to look at words with."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from elmokit.cli.options import TEXTS
from elmokit.errors import MissingExtraError
from elmokit.serve.settings import Limits, ServeSettings
from elmokit.translation import translate

NEEDED = ("fastapi", "uvicorn", "prometheus_client")
MODELS = "A bundled model (en, zh), a model's folder, file or address; en and zh unless given. May be repeated."
CORPORA = f"{TEXTS} Or the folder of an index. MODEL=TEXT says which model reads it. May be repeated."


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServeOptions(ServeSettings):
    """Who may ask."""

    key: Annotated[str | None, Parameter(env_var="ELMOKIT_KEY", show_env_var=True)] = None
    """Clients must send it: Authorization: Bearer KEY. From the variable, it is not seen among processes."""
    log_texts: Annotated[bool, Parameter(negative="")] = False
    """Write down what was asked, too."""


@Parameter(name="limit")
@dataclass(frozen=True, kw_only=True)
class LimitOptions(Limits):
    """What requests may ask for."""


def serve(
    *,
    model: Annotated[list[str] | None, Parameter(alias="-m", help=MODELS)] = None,
    corpus: Annotated[list[str] | None, Parameter(help=CORPORA)] = None,
    task: list[Path] | None = None,
    static: Path | None = None,
    options: ServeOptions = ServeOptions(),
    limits: LimitOptions = LimitOptions(),
    open_: Annotated[bool, Parameter(name="--open", negative="")] = False,
) -> None:
    """Serve models, corpora and trained tasks over HTTP, with a page to look at words in their contexts.

    Example: elmokit serve --open

    Example: elmokit serve --model my-elmo --corpus novels/ --task ner

    Without a model and a corpus, those that come with elmokit are served. The index of a corpus is built in the
    background and kept. SIGTERM or Ctrl-C finishes what is under way.

    Parameters
    ----------
    task
        The folder of a trained task. May be repeated.
    static
        A file of static vectors (word2vec, GloVe), whose neighbours are shown beside.
    open_
        Open the page in a browser.
    """
    if any(find_spec(name) is None for name in NEEDED):
        raise MissingExtraError("the server needs fastapi, uvicorn and prometheus-client", "serve")
    from elmokit.bundled import bundled_names
    from elmokit.cli.demo import find_sample
    from elmokit.model.threads import share_freed_memory
    from elmokit.serve.server import serve as run
    from elmokit.serve.service import open_service

    share_freed_memory()
    samples = [] if model else [str(find_sample(f"{name}.txt")) for name in bundled_names()]
    named: dict[str, Any] = {"corpora": samples if corpus is None else corpus, "tasks": task or (), "static": static}
    service = open_service(model or bundled_names(), **named, settings=options, limits=limits)

    def ready(address: str) -> None:
        corpora = ", ".join(service.corpora) or translate("none")
        print(translate(f"{address}  models: {', '.join(service.models)}; corpora: {corpora}"), flush=True)
        if open_:
            import webbrowser

            webbrowser.open(address)

    run(service, ready=ready)
