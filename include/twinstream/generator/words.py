"""What the strings of a column look like, guessed from the column's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Weighted = list[tuple[str, float]]

FIRST = ["Ada", "Alan", "Amina", "Chen", "Diego", "Grace", "Ines", "Jan", "Kofi", "Lena", "Mia", "Noah", "Olga", "Ravi"]
LAST = ["Hopper", "Ito", "Kowalski", "Lovelace", "Mbeki", "Novak", "Okafor", "Rossi", "Silva", "Smith", "Turing", "Zoë"]
WORDS = [
    "amber",
    "basalt",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "garnet",
    "harbor",
    "indigo",
    "juniper",
    "kelp",
    "lumen",
]
COUNTRIES = ["US", "DE", "GB", "FR", "IN", "BR", "JP", "PL", "ES", "NL", "ZA", "NG", "SE", "MX", "CH", "KE"]
STATUSES: Weighted = [("paid", 50), ("shipped", 30), ("pending", 10), ("cancelled", 5), ("returned", 3), ("test", 2)]
DEVICES: Weighted = [("mobile", 60), ("desktop", 32), ("tablet", 7), ("bot", 1)]


def zipf(values: list[str]) -> Weighted:
    """The n-th value is seen 1/n as often as the first: a few keys are hot, most are rare."""
    return [(value, 1 / rank) for rank, value in enumerate(values, start=1)]


def pages(rng: Random) -> Weighted:
    """Paths of a shop; one holds a quote, a comma and umlauts, to keep writers and readers honest."""
    products = [f"/products/{number}" for number in rng.sample(range(1, 10_000), 400)]
    odd = '/search?q="blue, größe 42"'
    return [*zipf(["/", "/search", "/cart", "/checkout", "/account", *products]), (odd, 0.02)]


def people(rng: Random) -> Weighted:
    """E-mail addresses as people type them: some in capitals, some with stray spaces."""
    typed: Weighted = []
    for number in range(1_500):
        clean = f"{rng.choice(FIRST)}.{rng.choice(LAST)}{number}@example.com".lower()
        habit = rng.randrange(20)
        typed.append((clean.title() if habit == 0 else clean.upper() if habit == 1 else clean, 1))
        if habit == 2:
            typed.append((f"  {clean} ", 1))
    return typed


def countries(rng: Random) -> Weighted:
    """Country codes, now and then in lower case."""
    return [pair for name, share in zipf(COUNTRIES) for pair in ((name, share), (name.lower(), share / 20))]


def names(rng: Random) -> Weighted:
    """People's full names."""
    return [(f"{first} {last}", 1) for first in FIRST for last in LAST]


def identifiers(prefix: str, rng: Random) -> Weighted:
    """References to things that exist elsewhere, such as `session-4711`."""
    return zipf([f"{prefix}-{number}" for number in rng.sample(range(1_000, 100_000), 1_000)])


def generic(rng: Random) -> Weighted:
    """Words for a column whose name says nothing."""
    return zipf([f"{rng.choice(WORDS)}-{rng.randrange(1_000)}" for _ in range(500)])


_GUESSES: list[tuple[set[str], Callable[[Random], Weighted]]] = [
    ({"page", "path", "url", "uri", "referrer"}, pages),
    ({"customer", "email", "mail", "user", "member", "login"}, people),
    ({"country", "nation"}, countries),
    ({"status", "state"}, lambda rng: STATUSES),
    ({"device", "platform"}, lambda rng: DEVICES),
    ({"currency"}, lambda rng: zipf(["EUR", "USD", "GBP", "JPY", "PLN", "CHF"])),
    ({"city"}, lambda rng: zipf(["Berlin", "Lagos", "São Paulo", "Tokyo", "Paris", "Kraków", "Austin", "Pune"])),
    ({"name"}, names),
]


def strings(column: str, rng: Random) -> Weighted:
    """Weighted values for a string column of that name."""
    tokens = [token for token in re.split(r"[^a-z0-9]+", column.lower()) if token]
    if len(tokens) > 1 and tokens[-1] in {"id", "key", "no"}:
        return identifiers(tokens[0], rng)
    if set(tokens) & {"sku", "product", "item"}:
        return identifiers("sku", rng)
    for known, make in _GUESSES:
        if known & set(tokens):
            return make(rng)
    return generic(rng)
