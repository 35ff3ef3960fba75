"""Record ids of a pipeline that deduplicates: kept per txid beside the partials, found again without reading them."""
