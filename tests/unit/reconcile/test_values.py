"""The arithmetic and the stored form of digests and fingerprints, without Spark."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinstream.errors import ShapeMismatch
from twinstream.reconcile.digests import BucketDigests, Digest
from twinstream.reconcile.linear import PRIMES, LinearFingerprint

WORD = st.integers(0, 2**64 - 1)
DIGESTS = st.builds(
    BucketDigests,
    st.just("(k): k bigint"),
    st.dictionaries(st.integers(0, 4095), st.builds(Digest, st.integers(1, 2**40), WORD, WORD), max_size=9),
)
PARTS = st.tuples(*(st.integers(0, prime - 1) for prime in PRIMES)).filter(any)
LINEAR = st.builds(
    LinearFingerprint, st.just("linear"), st.dictionaries(st.integers(0, 4095), PARTS, max_size=9)
)  # fmt: skip


@given(st.one_of(st.tuples(DIGESTS, DIGESTS, DIGESTS), st.tuples(LINEAR, LINEAR, LINEAR)))
def test_they_add_up_in_any_order_and_subtract(three):
    one, other, third = three
    assert one + other == other + one
    assert (one + other) + third == one + (other + third)
    assert (one + other) - other == one
    assert (one - one).buckets == {}
    assert one.differing(one) == ()
    assert set(one.differing(other)) == {
        number for number in {*one.buckets, *other.buckets} if one.buckets.get(number) != other.buckets.get(number)
    }
    assert (one.hexdigest == other.hexdigest) == (one == other)


@given(st.one_of(DIGESTS, LINEAR))
def test_they_survive_being_stored(value):
    assert type(value).from_json(value.to_json()) == value


@pytest.mark.parametrize("kind", [BucketDigests, LinearFingerprint])
def test_those_of_different_shapes_are_not_compared(kind):
    with pytest.raises(ShapeMismatch, match="one and other"):
        kind("one", {}).differing(kind("other", {}))


def test_the_primes_are_prime_and_their_products_fit_into_a_bigint():
    for prime in PRIMES:
        assert all(prime % divisor for divisor in range(2, 46_342))
    assert max(PRIMES) ** 2 < 2**63
