"""How the lines of a JSON file look, block by block, without parsing them: what Spark's fast reader may be given.

All letters of a block are compared at once, into arrays that are used for the next one too. Several threads look
through files, and only while whole arrays are compared does one of them leave the interpreter to the others.
"""

from __future__ import annotations

from functools import cache
from typing import Any

_NEWLINE, _OPEN, _CLOSE, _RETURN, _POINT, _MINUS, _EXPONENT, _COLON, _ZERO = b"\n{}\r.-e:0"
_ODD_STARTS = b" \t\r\n[\xef"
_DIGITS = b"0123456789"
_ZONES = b"Z+-"
_ENDS = b',}] \t\r\n"'


class Shape:
    """How whole lines start and end, where braces close, and how many digits numbers have after the point."""

    def __init__(self, nested: bool, scale: int | None, most: int) -> None:
        """For blocks of `most` letters at most; `scale` as for `scan_json_lines`."""
        import numpy as np

        self.lines = 0
        self.fits = scale is not None
        self._nested = nested
        self._scale = scale or 0
        self._closes = 0
        self._closed_lines = 0
        self._starts_well = True
        self._balanced = True
        self._marks, self._more, self._digits = (np.empty(most, bool) for _ in range(3))
        self._spare = np.empty(most, np.uint8)

    def add(self, block: Any) -> int:
        """Looks at the whole lines of a block that begins with a line; how many letters they have."""
        import numpy as np

        ends = np.flatnonzero(self._are(block, _NEWLINE))
        if not len(ends):
            return 0
        letters = block[: ends[-1] + 1]
        self.lines += len(ends)
        # Jackson takes bytes with a zero in them for another encoding than UTF-8.
        self._starts_well &= bool(letters.min())
        firsts = letters[np.concatenate(([0], ends[:-1] + 1))]
        self._starts_well &= not _table(_ODD_STARTS)[firsts].any()
        last = letters[ends - 1]
        if (last == _RETURN).any():
            last = np.where(last == _RETURN, letters[ends - 2], last)
        self._closed_lines += int(np.count_nonzero(last == _CLOSE))
        self._closes += int(np.count_nonzero(self._are(letters, _CLOSE)))
        if self._nested:
            self._balanced &= _closes_line_by_line(letters, ends)
        if self.fits:
            self.fits = not (self._has_long_fraction(letters) or self._has_exponent(letters))
        return len(letters)

    def plain(self) -> bool:
        """Whether the fast JSON reader gives one record a line and overlooks nothing behind an object.

        In flat records nothing can follow an object if every closing brace ends its line; in nested ones every line
        must end with a brace, and only there may all braces be closed.
        """
        if self._nested:
            return self._starts_well and self._closed_lines == self.lines and self._balanced
        return self._starts_well and self._closed_lines == self._closes

    def _are(self, letters: Any, letter: int) -> Any:
        """Which letters are this one, until the next time it is asked."""
        import numpy as np

        return np.equal(letters, letter, out=self._marks[: len(letters)])

    def _has_long_fraction(self, letters: Any) -> bool:
        """Whether a number has more than `scale` digits after its point.

        What looks like a number in a text counts too, but not the seconds of a moment: a wrong alarm only costs time.
        """
        import numpy as np

        reach = self._scale + 1
        size = max(0, len(letters) - reach)
        digits = self._digits[: len(letters)]
        # What is below zero wraps around.
        np.less(np.subtract(letters, _ZERO, out=self._spare[: len(letters)]), 10, out=digits)
        points = self._are(letters[:size], _POINT)
        points &= digits[reach:]
        if size > 4:  # a digit and a colon three letters before its point: no number in JSON, but a moment
            moments = np.equal(letters[1 : size - 3], _COLON, out=self._more[: size - 4])
            moments &= digits[: size - 4]
            np.greater(points[4:], moments, out=points[4:])
        if not points.any():
            return False
        places = np.flatnonzero(points)
        is_digit = _table(_DIGITS)
        for step in range(1, reach + 1):
            places = places[is_digit[letters[places + step]]]
        places = places + reach
        while len(places):
            places = places + 1
            following = letters[places]
            more = is_digit[following]
            if (~more & ~_table(_ZONES)[following]).any():
                return True
            places = places[more]
        return False

    def _has_exponent(self, letters: Any) -> bool:
        """Whether a number has a negative exponent, which could give it more digits."""
        import numpy as np

        marks = self._are(letters[1:], _MINUS)
        small = np.bitwise_or(letters[:-1], 0x20, out=self._spare[: len(marks)])
        marks &= np.equal(small, _EXPONENT, out=self._more[: len(marks)])
        if not marks.any():
            return False
        places = np.flatnonzero(marks)
        places = places[(places > 0) & (places < len(letters) - 2)]
        is_digit = _table(_DIGITS)
        before, after = letters[places - 1], letters[places + 2]
        places = places[(is_digit[before] | (before == _POINT)) & is_digit[after]] + 2
        while len(places):
            places = places + 1
            following = letters[places]
            if _table(_ENDS)[following].any():
                return True
            places = places[is_digit[following]]
        return False


def _closes_line_by_line(letters: Any, ends: Any) -> bool:
    """All braces are closed at the end of every line, and nowhere before it."""
    import numpy as np

    closing = letters == _CLOSE
    depths = np.cumsum((letters == _OPEN).astype(np.int64) - closing)
    return not depths[ends].any() and int(np.count_nonzero(closing & (depths == 0))) == len(ends)


@cache
def _table(letters: bytes) -> Any:
    """Whether a letter is one of these, for all letters."""
    import numpy as np

    found = np.zeros(256, bool)
    found[list(letters)] = True
    return found
