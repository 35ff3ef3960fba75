"""SQL as a list of words that know where they stand in the text.

sqlglot's tree is good for asking questions, not for writing the SQL back: written back, `datediff(hour, a, b)` gains
casts that change its answer. So questions are put to the tree, and changes are made to the user's own text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from twinstream.errors import DefinitionError

OPEN = ("(", "[")
CLOSE = (")", "]")


class Kind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"


@dataclass(frozen=True)
class Token:
    """A piece of SQL text from `start` up to, not including, `end`."""

    kind: Kind
    text: str
    start: int
    end: int
    depth: int

    @property
    def word(self) -> str:
        """The text to compare keywords and function names with: lower case, and nothing for names and literals."""
        return " ".join(self.text.lower().split()) if self.kind in (Kind.WORD, Kind.SYMBOL) else ""


@dataclass(frozen=True)
class Edit:
    """Put `text` in the place of what stands from `start` up to `end`."""

    start: int
    end: int
    text: str


def tokenize(sql: str) -> list[Token]:
    """The tokens of a statement or an expression, without comments; the depth counts open brackets around a token."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        found = sqlglot.tokenize(sql, read="spark")
    except SqlglotError as error:
        raise unreadable(sql, error) from error
    tokens: list[Token] = []
    depth = 0
    for token in found:
        if tokens and token.start < tokens[-1].end:
            continue  # a literal such as 1L, which sqlglot takes apart
        text = sql[token.start : token.end + 1]
        if tokens and token.start == tokens[-1].end and _kind(text) is tokens[-1].kind is Kind.STRING:
            last = tokens.pop()  # 'it''s' is one text, and another one than 'it' 's'
            tokens.append(Token(Kind.STRING, last.text + text, last.start, token.end + 1, depth))
            continue
        depth -= text in CLOSE
        tokens.append(Token(_kind(text), text, token.start, token.end + 1, depth))
        depth += text in OPEN
    return tokens


def without_comments(sql: str, tokens: Iterable[Token]) -> str:
    """The same text, in the same places, with blanks for comments and line ends between the tokens.

    Pieces of it can then be put into one another: a comment would swallow what comes behind it.
    """
    text, at = "", 0
    for token in tokens:
        text += " " * (token.start - at) + sql[token.start : token.end]
        at = token.end
    return text + " " * (len(sql) - at)


def edited(sql: str, edits: Iterable[Edit], start: int, end: int) -> str:
    """The text from `start` up to `end` with the edits that lie in it."""
    pieces = []
    for edit in sorted(edits, key=lambda edit: edit.start):
        if start <= edit.start and edit.end <= end:
            pieces += [sql[start : edit.start], edit.text]
            start = edit.end
    return "".join([*pieces, sql[start:end]]).strip()


def quoted(name: str) -> str:
    """A name as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def unreadable(sql: str, error: Exception) -> DefinitionError:
    """The error for SQL that sqlglot cannot read, with the place where it stopped."""
    details = getattr(error, "errors", None) or [{}]
    line, column = details[0].get("line"), details[0].get("col")
    place = f" at line {line}, column {column}" if line else ""
    reason = str(details[0].get("description") or error).split("\n")[0].rstrip(".")
    if "Required keyword" in reason:
        reason = "something is missing there"
    return DefinitionError(
        f"The SQL cannot be read{place}: {reason}.", next_step=f"It says: {' '.join(sql.split())[:200]}"
    )


def _kind(text: str) -> Kind:
    if text.startswith("`"):
        return Kind.QUOTED
    if text[-1] in "'\"":
        return Kind.STRING
    if text[0].isdigit() or (text[0] == "." and len(text) > 1):
        return Kind.NUMBER
    if text[0].isalpha() or text[0] == "_":
        return Kind.WORD
    return Kind.SYMBOL
