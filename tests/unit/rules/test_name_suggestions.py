from trotline.rules.name_suggestions import instead


def test_a_similar_name_is_offered_before_those_there_are():
    said = instead("shop-2", ["shop-1", "quotes-1"], "jobs")
    assert said == "Did you mean 'shop-1'? The jobs there are: shop-1, quotes-1."
    assert instead("zzz", ["Product"], "kinds") == "The kinds there are: Product."


def test_many_and_long_names_are_cut():
    said = instead("zzz", [f"{number}" * 100 for number in range(1, 30)], "kinds")
    assert said.endswith(", ....")
    assert len(said) < 800
