"""Write ``customers.csv``, a made-up table as they come: an identifier, words, numbers, holes.

Who leaves depends on the contract, on the months since the beginning, on calls to the support, and
on the fee only where there is no discount.
"""

import csv
from pathlib import Path

import numpy as np

N_ROWS = 1200
CITIES = ["Graz", "Linz", "Wien", "Salzburg", "Villach", "Wels", "Steyr", "Leoben", "Krems"]


def main() -> None:
    """Write the table next to this file."""
    rng = np.random.default_rng(2012)
    rows = []
    for number in range(N_ROWS):
        months = int(rng.gamma(1.5, 18.0))
        contract = rng.choice(["monthly", "one year", "two years"], p=[0.55, 0.25, 0.2])
        age = int(np.clip(rng.normal(46, 15), 18, 92))
        fee = rng.uniform(15, 95)
        discount = rng.random() < 0.4
        calls = int(rng.poisson(1.2))
        satisfaction = round(np.clip(5 - calls + rng.normal(0, 1), 1, 5))
        odds = -1.2 + 1.6 * (contract == "monthly") - 0.035 * months + 0.5 * calls
        odds += 0.0 if discount else 0.03 * (fee - 50)
        left = rng.random() < 1 / (1 + np.exp(-odds))
        rows.append(
            {
                "customer": f"C{number:05}",
                "months": months,
                "contract": contract,
                "city": rng.choice(CITIES),
                "age": "" if rng.random() < 0.04 else age,
                "monthly fee": f"{fee:.2f}",
                "discount": "yes" if discount else "no",
                "support calls": calls,
                "satisfaction": "" if rng.random() < 0.3 else satisfaction,
                "left": "yes" if left else "no",
            }
        )
    with (Path(__file__).parent / "customers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
