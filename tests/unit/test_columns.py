from __future__ import annotations

import pytest

from twinstream.columns import parse_columns, parse_type
from twinstream.errors import DefinitionError


def test_a_column_list_gives_names_and_canonical_types_in_its_order():
    ddl = """
        event_id STRING, -- the record id
        amount decimal( 12 , 2 ),
        items array<struct<sku:string, Qty Integer>>,
        sizes map<string,array<long>> comment 'per shop',
        at timestamp_ltz, `we ird` dec, flag: boolean, local timestamp_ntz
    """
    assert list(parse_columns(ddl).items()) == [
        ("event_id", "string"),
        ("amount", "decimal(12,2)"),
        ("items", "array<struct<sku:string,Qty:int>>"),
        ("sizes", "map<string,array<bigint>>"),
        ("at", "timestamp"),
        ("we ird", "decimal(10,0)"),
        ("flag", "boolean"),
        ("local", "timestamp_ntz"),
    ]


def test_words_of_sql_can_be_column_names():
    assert parse_columns("date date, timestamp timestamp, order int, user string, index bigint") == {
        "date": "date",
        "timestamp": "timestamp",
        "order": "int",
        "user": "string",
        "index": "bigint",
    }


@pytest.mark.parametrize(
    ("ddl", "words"),
    [
        ("", "names no column"),
        ("   -- nothing", "names no column"),
        ("a", "a type is missing"),
        ("a int,", "a name is expected"),
        ("a int b int", "'b' is not expected"),
        ("a strng", "Did you mean 'string'?"),
        ("a varchar(10)", "Spark's name for it is 'string'"),
        ("a datetime", "Spark's name for it is 'timestamp'"),
        ("a variant", "'variant' is not a type"),
        ("a int, b string, A int", "'A' is there twice"),
        ("a struct<x:int,X:int>", "'X' is there twice"),
        ("_txid bigint", "starts with an underscore"),
        ("a int not null", "NOT NULL is not checked"),
        ("a decimal(39,2)", "decimal(39,2) does not exist"),
        ("a decimal(3,5)", "decimal(3,5) does not exist"),
        ("a decimal(x)", "decimal(12,2)"),
        ("a array<int", "'>' expected"),
        ("a array<int>>", "'>' is not expected"),
        ("a map<int>", "',' expected"),
        ("a int comment x", "COMMENT needs a text"),
        ("é int", "put backticks around"),
        ("a 'int", "cannot be read"),
    ],
)
def test_a_bad_column_list_is_refused_with_the_reason(ddl, words):
    with pytest.raises(DefinitionError) as error:
        parse_columns(ddl)
    assert words in str(error.value)


def test_a_type_knows_what_its_fields_are():
    items = parse_type("array<struct<sku:string,size:struct<w:int>>>")
    assert str(items.field("SKU")) == "array<string>"
    assert str(parse_type("struct<a:struct<b:date>>").field("a")) == "struct<b:date>"
    assert str(parse_type("map<string,int>").field("anything")) == "int"
    assert items.field("nothing") is None
    assert parse_type("int").field("a") is None


def test_unusual_field_names_survive_a_round_trip():
    kind = parse_type("struct<`a b`:int,`x``y`:string>")
    assert parse_type(str(kind)) == kind
    assert [name for name, _ in kind.parts] == ["a b", "x`y"]
