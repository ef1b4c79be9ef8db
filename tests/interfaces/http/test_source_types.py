"""The source type of a memory over HTTP."""

from __future__ import annotations

import httpx


def test_http_takes_it_filters_by_it_and_refuses_others(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The ferry leaves at nine.", "id": "a", "source_type": "user"})
    http.post("/v1/memories", json={"text": "The ferry costs four.", "id": "b"})
    found = http.post("/v1/recall", json={"query": "ferry", "filters": {"source_types": ["user"]}}).json()["hits"]
    assert [(hit["id"], hit["source_type"]) for hit in found] == [("a", "user")]
    listed = http.get("/v1/memories", params={"source_type": "user"}).json()
    assert [one["id"] for one in listed["memories"]] == ["a"]
    refused = http.post("/v1/memories", json={"text": "x", "source_type": "friend"})
    assert (refused.status_code, refused.json()["class"]) == (422, "InvalidInput")
