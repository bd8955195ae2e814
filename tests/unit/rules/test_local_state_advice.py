from trotline.rules.local_state_advice import Kept, moves

SERVERS = Kept(frontier="redis://queue/0", frontier_is_file=False, sink="postgresql://db/shop", sink_is_file=False)
FILES = Kept(
    frontier="sqlite:f.db", frontier_is_file=True, sink="sqlite:r.db", sink_is_file=True, has_accounts=True,
    has_chains=True, conditional=True, proxies="proxies.toml", spider="shop.py",
)  # fmt: skip


def test_files_of_one_machine_have_to_go_to_servers():
    found = {each.what: each.then for each in moves(FILES)}

    assert "redis://" in found["queue, and URLs that were seen"]
    assert "postgresql://" in found["records and their history"]
    assert "logs in again" in found["cookies and sessions of accounts"]
    assert {"chains", "proxies, accounts, passwords", "the spider's code"} <= found.keys()


def test_what_is_on_a_server_is_shared_already():
    found = {each.what: each.then for each in moves(SERVERS)}

    assert found["queue, and URLs that were seen"] == found["records and their history"] == "shared already"
    assert "chains" not in found
