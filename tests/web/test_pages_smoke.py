from tests.web.dashboard import Dashboard


def test_x(fleet: Dashboard) -> None:
    print(fleet.api("jobs"))
