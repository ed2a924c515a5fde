"""`elmokit export-page`: the page with models in it, for a classroom without a server."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from elmokit.translation import translate


def export_page(
    *models: Annotated[str, Parameter(name="MODEL")],
    output: Annotated[Path, Parameter(alias="-o")],
    half: bool = True,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write a folder with a page that studies sentences in the browser alone: without a server, without a network.

    Example: elmokit export-page en zh -o page

    Open page/index.html, or put the folder on any host. It shows how surprising words are, what could stand in their
    places, and how near the words of two sentences are.

    Parameters
    ----------
    models
        A bundled model (en, zh), a model's folder, file or address. May be repeated.
    output
        The folder to make.
    half
        Store 16-bit weights: half the size, nearly the same numbers.
    overwrite
        Replace a page that is there already.
    """
    from elmokit.serve.page_export import write_page

    write_page(models, output, half=half, overwrite=overwrite)
    size = sum(file.stat().st_size for file in output.rglob("*")) / 1e6
    print(translate(f"{output}: written, {size:.0f} MB; open {output / 'index.html'} in a browser"))
