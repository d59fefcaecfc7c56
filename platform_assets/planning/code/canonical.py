"""Python code as text that is the same for code that does the same."""

from __future__ import annotations

import ast
from collections.abc import Iterable


def canonical(node: object) -> str:
    """Code as text that is the same for code that does the same, on every version of Python.

    Comments, formatting and docstrings are not in it, nor are places and whatever is empty: a newer Python adds fields.
    """
    match node:
        case ast.JoinedStr(values=values):
            return f"JoinedStr(values={canonical(_joined(values))})"
        case ast.AST():
            fields = ((name, value) for name, value in ast.iter_fields(node) if name not in ("kind", "type_comment"))
            shown = ((name, _without_docstring(node, value) if name == "body" else value) for name, value in fields)
            parts = (f"{name}={canonical(value)}" for name, value in shown if value is not None and value != [])
            # The constant None, which a field that is not there is told from.
            value = "None" if isinstance(node, ast.Constant) and node.value is None else ",".join(parts)
            return f"{type(node).__name__}({value})"
        case list():
            return f"[{','.join(map(canonical, node))}]"
        case _:
            return ascii(node)


def canonical_body(body: Iterable[ast.stmt]) -> str:
    """Statements as text, but for those that are a text alone, as docstrings are."""
    return " ".join(
        canonical(statement)
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    )


def _without_docstring(node: ast.AST, body: object) -> object:
    match node, body:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef(), [
            ast.Expr(value=ast.Constant(value=str())),
            *rest,
        ]:
            return rest or [ast.Pass()]
    return body


def _joined(values: Iterable[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string with neighbouring texts as one; where a text ends is up to the version of Python."""
    parts: list[ast.expr] = []
    for value in values:
        match parts, value:
            case _, ast.Constant(value=""):
                pass
            case [*_, ast.Constant(value=str(before))], ast.Constant(value=str(after)):
                parts[-1] = ast.Constant(value=before + after)
            case _:
                parts.append(value)
    return parts
