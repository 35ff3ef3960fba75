"""What the web team expects of page views; asked with every reconciliation, or as a gate before every commit."""

import great_expectations as gx
import great_expectations.expectations as gxe


def suite() -> gx.ExpectationSuite:
    """A page has at least one view, and its spend is never negative."""
    return gx.ExpectationSuite(
        name="page_views",
        expectations=[
            gxe.ExpectColumnValuesToBeBetween(
                column="views", min_value=1, severity="critical", description="Every row has at least one view"
            ),
            gxe.ExpectColumnValuesToBeBetween(
                column="spend", min_value=0, severity="warning", description="Nobody spends less than nothing"
            ),
            gxe.ExpectColumnValuesToNotBeNull(
                column="page", severity="critical", description="Every row belongs to a page"
            ),
        ],
    )
