"""Clicks per page and minute from a topic, each counted once although producers repeat themselves."""

from twinstream import Aggregate, Deduplicate, DeltaSink, KafkaSource, Pipeline, Watermark, count, fixed, sum_

pipeline = Pipeline(
    name="clicks",
    source=KafkaSource(
        topics="clicks",
        schema="event_id string, page string, amount decimal(12,2), at timestamp",
        connection="kafka_default",
    ),
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at from events where page is not null",
    deduplicate=Deduplicate(horizon="1 hour"),
    operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={"clicks": count(), "spend": sum_("amount")}),
    watermark=Watermark(delay="10 minutes", late="side", max_future="1 hour"),
    sink=DeltaSink("tables/clicks"),
    batch_records=20_000,
)
