"""Indexes for Elasticsearch and OpenSearch: mapping, bulk files and a query."""
