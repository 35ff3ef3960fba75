"""A Kafka broker from its jars: one process that is broker and controller, in a folder of ours, on loopback."""

from __future__ import annotations

import os
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bin.lib.local.processes import free_port, spawn, tail, wait_for_port
from twinstream.errors import EnvironmentMissing

START_SECONDS = 90.0
LOGGING = """\
Configuration:
  Appenders:
    Console:
      name: out
      PatternLayout:
        pattern: "%d %p %c{1}: %m%n"
  Loggers:
    Root:
      level: warn
      AppenderRef:
        ref: out
"""


@dataclass(frozen=True)
class Kafka:
    """Where the broker keeps its files, and where it listens; both stay the same from start to start."""

    folder: Path
    jars: Path
    port: int = field(default_factory=free_port)
    controller_port: int = field(default_factory=free_port)
    password: str = field(default="", repr=False)
    """With one, clients must be the user twinstream and know it (SASL/PLAIN)."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Settings besides."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "kafka.log"

    def start(self) -> subprocess.Popen[bytes]:
        """Starts the broker, which answers a moment later; the first time its folder is made ready."""
        if not any(self.jars.glob("kafka_*.jar")):
            raise EnvironmentMissing(f"The broker's jars are not in {self.jars}.", next_step="Run bin/setup --kafka.")
        self._write()
        if not (self.folder / "data" / "meta.properties").exists():
            cluster = f"--cluster-id={urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip('=')}"
            made = self._java("kafka.tools.StorageTool", "format", cluster, "-c", str(self._properties))
            if made.wait() != 0:
                raise EnvironmentMissing(
                    f"The broker's folder could not be made: {tail(self.log)}", next_step="Mend that, then start again."
                )
        return self._java("kafka.Kafka", str(self._properties))

    def wait(self, broker: subprocess.Popen[bytes]) -> None:
        """Returns when it answers."""
        wait_for_port("The Kafka broker", broker, self.port, self.log, START_SECONDS)

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _write(self) -> None:
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        (self.folder / "log4j2.yaml").write_text(LOGGING)
        listener = "SASL_PLAINTEXT" if self.password else "PLAINTEXT"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"{listener}://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"{listener}://127.0.0.1:{self.port}",
            "listener.security.protocol.map": f"{listener}:{listener},CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": listener,
            "log.dirs": str(self.folder / "data"),
            "num.partitions": "3",
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            **{f"{topic}.replication.factor": "1" for topic in ("offsets.topic", "transaction.state.log")},
            **{f"{topic}.num.partitions": "1" for topic in ("offsets.topic", "transaction.state.log")},
            "transaction.state.log.min.isr": "1",
            **self.more,
        }
        if self.password:
            settings |= {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                    "org.apache.kafka.common.security.plain.PlainLoginModule required "
                    f'username="twinstream" password="{self.password}" user_twinstream="{self.password}";'
                ),
            }
        self._properties.unlink(missing_ok=True)
        with os.fdopen(os.open(self._properties, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as output:
            output.writelines(f"{name}={value}\n" for name, value in settings.items())

    def _java(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = os.environ.get("JAVA_HOME")
        java = Path(home, "bin", "java") if home else Path("java")
        options = ["-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={self.folder / 'log4j2.yaml'}"]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        command: list[str | Path] = [java, *options, "-cp", f"{self.jars}/*", program, *arguments]
        return spawn(command, self.log, kept, self.folder)
