"""How commands of the engine are run on Spark from a task, and how nothing of them is left behind."""
