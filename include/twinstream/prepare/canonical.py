"""One form for all ways of writing the same SQL, so that a new layout or comment is not a new definition.

It is made of the user's own tokens rather than written back from sqlglot's tree: the tree forgets differences that
change results, and another version of sqlglot would write it in another way, which would make every definition look
changed.
"""

from __future__ import annotations

from twinstream.columns import TYPE_NAMES
from twinstream.prepare.tokens import Kind, Token, tokenize, unreadable

# fmt: off
_KEYWORDS = frozenset((
    "select", "from", "where", "and", "or", "not", "as", "is", "null", "in", "between", "like", "ilike", "rlike",
    "regexp", "case", "when", "then", "else", "end", "lateral", "view", "outer", "true", "false", "div", "distinct",
    "interval", "escape", "any", "all", "except",
))
# fmt: on
_CASTS = ("cast", "try_cast")
_BEFORE = ("", "select", "where", ",", "(", "and", "or", "when", "then", "else", "->")
_AFTER = ("", ",", ")", "from", "where", "and", "or", "when", "then", "else", "end", "as", "lateral")


def canonical_sql(sql: str) -> str:
    """The SQL without comments, layout, keyword case and parentheses that change nothing; all else stays as written.

    Takes a statement or an expression. DefinitionError when it cannot be read.
    """
    words = _cased(tokenize(sql))
    while words and words[-1] == ";":
        words.pop()
    _tree(" ".join(words), sql)
    return " ".join(_without_needless_parentheses(words, sql))


def _cased(tokens: list[Token]) -> list[str]:
    """Keywords, function names and types in lower case; names of columns keep theirs, since results carry them."""
    words: list[str] = []
    calls: list[str] = []
    in_type: list[bool] = []
    for n, token in enumerate(tokens):
        following = tokens[n + 1] if n + 1 < len(tokens) else None
        word = token.word
        if word == "(":
            calls.append(words[-1] if words else "")
            in_type.append(False)
        elif word == ")" and calls:
            calls.pop()
            in_type.pop()
        called = following is not None and following.text == "("
        literal = following is not None and following.kind is Kind.STRING
        of_a_type = any(in_type) and word in TYPE_NAMES and not (following and following.text == ":")
        if token.kind is Kind.WORD and (called or literal or of_a_type or word in _KEYWORDS):
            words.append(word)
        else:
            words.append(token.text if token.kind is not Kind.WORD else " ".join(token.text.split()))
        if word == "as" and calls and calls[-1] in _CASTS:
            in_type[-1] = True
    return words


def _without_needless_parentheses(words: list[str], sql: str) -> list[str]:
    """Takes out pairs that stand where nothing can bind to them from outside, if the tree stays the same without."""
    shape = _tree(" ".join(words), sql)
    n = 0
    while n < len(words):
        end = _needless(words, n)
        if end:
            shorter = [*words[:n], *words[n + 1 : end], *words[end + 1 :]]
            if _same(shorter, shape):
                words = shorter
                continue
        n += 1
    return words


def _needless(words: list[str], start: int) -> int:
    """Where the pair that opens at `start` closes, if it may go; else 0."""
    if words[start] != "(" or (words[start - 1] if start else "") not in _BEFORE:
        return 0
    depth = 0
    for end in range(start, len(words)):
        depth += (words[end] in "([") - (words[end] in ")]")
        if depth == 0:
            after = words[end + 1] if end + 1 < len(words) else ""
            return end if end > start + 1 and after in _AFTER else 0
        if depth == 1 and words[end] == ",":
            return 0
    return 0


def _same(words: list[str], shape: object) -> bool:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return bool(_bare(sqlglot.parse_one(" ".join(words), read="spark")) == shape)
    except SqlglotError:
        return False


def _tree(text: str, sql: str) -> object:
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return _bare(sqlglot.parse_one(text, read="spark"))
    except SqlglotError as error:
        raise unreadable(sql, error) from error


def _bare(tree: object) -> object:
    from sqlglot import exp

    assert isinstance(tree, exp.Expr)
    tree = tree.unnest()
    for parentheses in list(tree.find_all(exp.Paren)):
        parentheses.replace(parentheses.this)
    return tree
