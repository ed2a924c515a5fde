"""ES modules as one classic script: from a disk, browsers run scripts but load no modules."""

import re
from pathlib import Path

_IMPORT = re.compile(r'^import (\{[^}]+\}) from "([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def bundle(main: Path) -> str:
    """A module and all that it imports, each as a function that gives what it exports, after those it needs."""
    found: dict[Path, str] = {}
    _add(main.resolve(), found, ())
    return '"use strict";\nconst modules = {};\n' + "".join(found.values())


def _add(module: Path, found: dict[Path, str], importers: tuple[Path, ...]) -> None:
    if module in importers:
        raise ValueError(f"{module} imports itself, by way of {importers[-1].name}: a script has no such order")
    if module in found:
        return
    text = module.read_text(encoding="utf-8")
    for _, address in _IMPORT.findall(text):
        _add((module.parent / address).resolve(), found, (*importers, module))
    exports = ", ".join(_EXPORT.findall(text))
    body = _EXPORT.sub("", _IMPORT.sub(lambda match: _taken(match, module), text))
    if other := _OTHER.search(body):
        raise ValueError(f'{module}: {other[0]!r}: only import {{…}} from "…" and exported declarations are known')
    found[module] = f"\nmodules[{_name(module)}] = (() => {{\n{body}return {{ {exports} }};\n}})();\n"


def _taken(match: re.Match[str], module: Path) -> str:
    names, source = match[1].replace(" as ", ": "), (module.parent / match[2]).resolve()
    return f"const {names} = modules[{_name(source)}];"


def _name(module: Path) -> str:
    return f'"{module.parent.name}/{module.name}"'
