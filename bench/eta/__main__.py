"""`python -m bench.eta`: the error of the estimate on recorded crawls, at 25, 50 and 75 % of their time."""

from statistics import median

from bench.eta import SHARES, Guess, guess, recordings
from trotline.rules.eta import Unknown


def told(found: Guess) -> str:
    if isinstance(found.said, Unknown):
        return found.said.name.lower()
    return f"{found.said.likely:.0f} s of {found.truth:.0f} ({100 * (found.error or 0.0):.0f} %)"


def main() -> None:
    every = recordings()
    print(f"{'crawl':<28}{'length':>8}  " + "".join(f"{f'at {100 * share:.0f} %':<24}" for share in SHARES))
    for recording in every:
        guesses = "".join(f"{told(guess(recording, share)):<24}" for share in SHARES)
        print(f"{recording.name:<28}{recording.length:>6.0f} s  {guesses}")
    errors = {share: [guess(one, share).error for one in every] for share in SHARES}
    medians = [median(error for error in errors[share] if error is not None) for share in SHARES]
    print(f"{'median error':<38}" + "".join(f"{f'{100 * error:.0f} %':<24}" for error in medians))


if __name__ == "__main__":
    main()
