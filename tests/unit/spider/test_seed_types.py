"""Seeds that are written down wrong: the message says what to write."""

import pytest

from trotline import FileSeeds, RobotsSitemaps, Sitemap


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Sitemap(3), "Sitemap: 3 is not a URL"),
        (lambda: RobotsSitemaps(None), "RobotsSitemaps: None is not a URL"),
        (lambda: Sitemap("https://shop.example/sitemap.xml", match=3), "match is 3; give a regular expression"),
        (lambda: FileSeeds(3), 'write FileSeeds("urls.txt")'),
    ],
)
def test_a_seed_of_a_wrong_type_is_refused_where_it_is_written(make, said):
    with pytest.raises(ValueError) as refused:
        make()
    assert said in str(refused.value)
