"""The shuffle setting comes back however comparisons overlap."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from twinstream.reconcile.partitions import FEW, SETTING, few_partitions


class Conf(dict):
    def set(self, name, value):
        self[name] = value

    def unset(self, name):
        del self[name]


@pytest.mark.parametrize(("before", "meanwhile"), [("200", str(FEW)), ("2", "2"), (None, str(FEW))])
def test_the_last_to_leave_restores_it(before, meanwhile):
    conf = Conf() if before is None else Conf({SETTING: before})
    session = SimpleNamespace(conf=conf)
    first, second = few_partitions(session), few_partitions(session)
    first.__enter__()
    second.__enter__()
    assert conf[SETTING] == meanwhile
    first.__exit__(None, None, None)
    assert conf[SETTING] == meanwhile
    second.__exit__(None, None, None)
    assert conf.get(SETTING) == before
