"""The OpenAPI description as a page that needs nothing from elsewhere, and no script."""

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from elmokit.serve.schemas import LAYER_NUMBER

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>elmokit: the API</title><link rel="stylesheet" href="/page/docs.css"></head><body><main>"""


def with_layers(schema: Any, most: int) -> Any:
    """The description, in which a layer's number is that of a layer that a model has."""
    if isinstance(schema, dict):
        if schema.get("title") == LAYER_NUMBER:
            return schema | {"maximum": most}
        return {name: with_layers(part, most) for name, part in schema.items()}
    return [with_layers(part, most) for part in schema] if isinstance(schema, list) else schema


def describe(openapi: Mapping[str, Any]) -> str:
    """A section a route: what it does, the fields of its request, its statuses."""
    about = f"<h1>{escape(openapi['info']['title'])} {escape(openapi['info']['version'])}</h1>"
    machine = '<p>For machines: <a href="/openapi.json">openapi.json</a>. <a href="/">The page</a>.</p>'
    routes = [(path, *one) for path, methods in openapi["paths"].items() for one in methods.items()]
    sections = (_section(f"{method.upper()} {path}", route, openapi) for path, method, route in routes)
    return "\n".join([HEAD, about, machine, *sections, "</main></body></html>"])


def _section(title: str, route: Mapping[str, Any], openapi: Mapping[str, Any]) -> str:
    parts = [f"<section><h2><code>{escape(title)}</code></h2>"]
    parts += [f"<p>{escape(part)}</p>" for part in route.get("description", "").split("\n\n")]
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    if rows := list(_rows(resolved(content.get("schema", {}), openapi), openapi)):
        parts.append("<table><thead><tr><th>field</th><th>what</th><th>unless given</th></tr></thead><tbody>")
        parts += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
        parts.append("</tbody></table>")
    statuses = (f"{status}: {one.get('description', '')}" for status, one in route["responses"].items())
    return "\n".join([*parts, f"<p class='statuses'>{escape(' · '.join(statuses))}</p></section>"])


def _rows(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    needed = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        default = "needed" if name in needed else json.dumps(field["default"]) if "default" in field else ""
        yield name, " ".join(filter(None, (kind_of(field, openapi), field.get("description", "")))), default


def kind_of(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> str:
    """A schema in a few words."""
    schema = resolved(schema, openapi)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(kind_of(one, openapi) for one in choices)
    if "enum" in schema or "const" in schema:
        return " or ".join(f'"{value}"' for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {kind_of(schema.get('items', {}), openapi)}"
    bounds = [f"{word} {schema[name]:g}" for name, word in (("minimum", "from"), ("maximum", "to")) if name in schema]
    return " ".join([schema.get("type", "any value"), *bounds])


def resolved(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference stands for."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Mapping[str, Any] = openapi["components"]["schemas"][name] if name else schema
    return found
