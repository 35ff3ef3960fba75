"""The two databases of a deployment, Airflow's and the ledger's, each with a user of its own."""

from __future__ import annotations

from collections.abc import Mapping

import psycopg
from psycopg import sql


def make_databases(server: str, passwords: Mapping[str, str]) -> None:
    """Makes a user and a database for each name, which no other user may enter; what is there gets the password given.

    `server` is the address of the server's own database with its superuser.
    """
    with psycopg.connect(server, autocommit=True) as connection:
        for name, password in passwords.items():
            user = sql.Identifier(name)
            if connection.execute("select from pg_roles where rolname = %s", [name]).fetchone() is None:
                connection.execute(sql.SQL("create role {} login").format(user))
            connection.execute(sql.SQL("alter role {} password {}").format(user, sql.Literal(password)))
            if connection.execute("select from pg_database where datname = %s", [name]).fetchone() is None:
                connection.execute(sql.SQL("create database {} owner {}").format(user, user))
            connection.execute(sql.SQL("revoke connect, temporary on database {} from public").format(user))
