"""The server under load and a cluster of two versions, in short."""

import sys

import pytest
from reliability import served
from reliability.count import held

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_many_requests_have_the_same_bits_and_leave_nothing_behind():
    held(served.requests(300))


@pytest.mark.ci
def test_slow_clients_change_no_answer():
    held(served.slow_clients(60, 200, seconds=3))


@pytest.mark.ci
def test_syncs_and_reloads_change_no_answer_and_leave_nothing_behind():
    held(served.changed_meanwhile(400, 20))


def test_a_server_starts_during_a_sync():
    held(served.started_during_syncs(1))


def test_what_a_killed_server_has_answered_is_recorded():
    held(served.killed_recording(1))


@pytest.mark.ci
def test_a_killed_refresh_refuses_no_search():
    held(served.killed_refreshing(2))


@pytest.mark.ci
def test_a_worker_of_another_version_is_named():
    pytest.importorskip("distributed", reason="needs Dask")
    held(served.versions(with_ours=(True,)))
