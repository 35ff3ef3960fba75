"""Orders, cleaned and kept one by one: an append with a total that the source does not have."""

from twinstream import Append, DeltaSink, FileSource, Orchestration, Pipeline, Watermark

pipeline = Pipeline(
    name="orders",
    source=FileSource(
        "data/orders",
        format="json",
        schema="order_id string, customer string, country string, status string, quantity int, price decimal(10,2), "
        "placed_at timestamp",
    ),
    record_id="order_id",
    event_time="placed_at",
    prepare="""
        select order_id, lower(trim(customer)) as customer, upper(country) as country, status, quantity, price,
               quantity * price as total, placed_at
        from events
        where status <> 'test' and quantity > 0
    """,
    operator=Append(),
    watermark=Watermark(delay="1 hour", late="drop", max_future="1 hour"),
    sink=DeltaSink("tables/orders"),
    batch_records=50_000,
    orchestration=Orchestration(
        microbatch="*/10 * * * *", recompute="30 2 * * *", reconcile="30 3 * * *", auto_repair=True, owner="shop"
    ),
)
