"""How to reach a broker: one setting per connection, for our own client and for Spark's.

The setting is named after the connection: `kafka_default` is TWINSTREAM_KAFKA_DEFAULT. It is an address, or a JSON
object with the names that librdkafka and Airflow's Kafka connection use. Secrets stay in the environment and in the
options of Spark's reader, which Spark redacts.
"""

from __future__ import annotations

import json
import logging
import re
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from twinstream.errors import DefinitionError, SettingsError
from twinstream.settings import PREFIX

_SAME = (
    "bootstrap.servers", "security.protocol", "client.id", "ssl.endpoint.identification.algorithm",
    "ssl.key.password", "request.timeout.ms",
)  # fmt: skip
_MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
_FILES = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_OURS = ("sasl.username", "sasl.password")
_KNOWN = {*_SAME, *_MECHANISM, *_FILES, *_OURS}
_OTHERS = ("group.id", "auto.offset.reset", "enable.auto.commit", "session.timeout.ms", "max.poll.interval.ms")
"""What a connection that is shared with consumers may say besides; it means nothing here."""
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def check_connection(part: str, connection: str) -> None:
    """Refuses a name that no setting could have."""
    if not re.fullmatch(r"kafka[a-z0-9_]*", connection):
        raise DefinitionError(
            f"{part}(connection={connection!r}) cannot be a connection's name.",
            next_step="Begin it with kafka and go on with lower-case letters, digits and underscores.",
        )


def variable_of(connection: str) -> str:
    """The environment variable of a connection."""
    return f"{PREFIX}{connection.upper()}"


def client_options(connection: str, known: Mapping[str, str]) -> dict[str, str]:
    """Options of librdkafka for one of the known connections."""
    variable = variable_of(connection)
    text = known.get(connection, "").strip()
    if not text:
        raise SettingsError(
            f"The Kafka connection {connection} is not set.",
            next_step=f"Set {variable} to the broker's address (host:port) or to a JSON object of its options; "
            f"in Airflow, make a connection {connection} of type Kafka.",
        )
    if not text.startswith("{"):
        return {"bootstrap.servers": text}
    try:
        found = {str(name): str(value) for name, value in json.loads(text).items()}
    except ValueError:
        raise SettingsError(f"{variable} is not a JSON object.", next_step="Mend it; quotes must be double.") from None
    found = {name: value for name, value in found.items() if name not in _OTHERS}
    unknown = sorted(found.keys() - _KNOWN)
    if unknown:
        raise SettingsError(
            f"{variable} has options that are not known here: {', '.join(unknown)}.",
            next_step=f"Use: {', '.join(sorted(_KNOWN))}.",
        )
    if not found.get("bootstrap.servers"):
        raise SettingsError(f"{variable} does not name the brokers.", next_step="Give it bootstrap.servers.")
    return found


def keeper(said: deque[str]) -> logging.Logger:
    """A logger for librdkafka: what it says explains a failure, but it says it every second. It is kept, not shown."""
    logger = logging.Logger("librdkafka")

    def keep(record: logging.LogRecord) -> bool:
        said.append(record.getMessage())
        return False

    logger.addFilter(keep)
    return logger


def spark_options(connection: str, known: Mapping[str, str]) -> dict[str, str]:
    """The same for Spark's reader and writer; files are handed on by their content, as executors may be elsewhere."""
    given = client_options(connection, known)
    found = {name: given[name] for name in _SAME if name in given}
    for file, content in _FILES.items():
        if file in given:
            store = content.split(".")[1]
            found |= {content: _text(given[file], connection), f"ssl.{store}.type": "PEM"}
    mechanism = next((given[name].upper() for name in _MECHANISM if name in given), None)
    if mechanism is not None:
        found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": _login(mechanism, given, connection)}
    return {f"kafka.{name}": value for name, value in found.items()}


def _login(mechanism: str, given: Mapping[str, str], connection: str) -> str:
    if mechanism not in _LOGINS:
        raise SettingsError(
            f"{variable_of(connection)} asks for the mechanism {mechanism}.",
            next_step=f"Use one of {', '.join(sorted(_LOGINS))}.",
        )
    user, password = (_quoted(given.get(name, "")) for name in _OURS)
    return f"{_LOGINS[mechanism]} required username={user} password={password};"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _text(path: str, connection: str) -> str:
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"{variable_of(connection)} names the file {path}, which cannot be read: {error.strerror}.",
            next_step="Correct its path, or let this user read it.",
        ) from error
