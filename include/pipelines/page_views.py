"""Page views per page and minute, with what visitors spent: a windowed aggregate."""

from twinstream import Aggregate, DeltaSink, FileSource, Orchestration, Pipeline, Watermark, count, fixed, sum_

pipeline = Pipeline(
    name="page_views",
    source=FileSource(
        "data/page_views",
        format="json",
        schema="event_id string, page string, amount decimal(12,2), at timestamp",
    ),
    record_id="event_id",
    event_time="at",
    prepare="select event_id, page, amount, at from events where page is not null",
    operator=Aggregate(by=["page"], window=fixed("1 minute"), measures={"views": count(), "spend": sum_("amount")}),
    watermark=Watermark(delay="10 minutes", late="side", max_future="1 hour"),
    sink=DeltaSink("tables/page_views"),
    batch_records=100_000,
    orchestration=Orchestration(
        microbatch="*/5 * * * *", recompute="0 2 * * *", reconcile="0 3 * * *", max_verdict_age="36 hours", owner="web"
    ),
)
