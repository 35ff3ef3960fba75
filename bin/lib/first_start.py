"""What the containers of docker-compose.yaml need before their first start: databases, Spark's defaults, the login.

It can be run again at any time: passwords that were changed in .env are taken over.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from bin.lib.local.databases import make_databases
from bin.lib.local.spark import write_defaults


def main() -> None:
    """Reads nothing but the environment that docker-compose.yaml sets."""
    env = os.environ
    user, password = env["POSTGRES_USER"], env["POSTGRES_PASSWORD"]
    server = f"postgresql://{user}:{password}@{env['POSTGRES_ADDRESS']}/postgres"
    make_databases(server, {"airflow": env["AIRFLOW_DATABASE_PASSWORD"], "twinstream": env["LEDGER_PASSWORD"]})
    share = {
        "spark.cores.max": env["SPARK_JOB_CORES"],
        "spark.executor.cores": "1",
        "spark.executor.memory": env["SPARK_EXECUTOR_MEMORY"],
    }
    write_defaults(Path(env["SPARK_CONF_DIR"]), env["SPARK_SECRET"], Path(env["TWINSTREAM_JARS"]), share)
    login = Path(env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
    login.touch(mode=0o600)
    login.write_text(json.dumps({"admin": env["AIRFLOW_ADMIN_PASSWORD"]}) + "\n")
    print("Databases, Spark's defaults and the login are in place.")


if __name__ == "__main__":
    main()
