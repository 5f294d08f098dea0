#!/usr/bin/env python3
"""./dev bench match: who is this? Streams of records whose truth is known go through match/, with an index of candidates in memory.

  automatic   joined a lead without asking: how many of them rightly
  review      a person has to look: how many, and how often the lead is among those shown
  pairs       precision, recall and F1 over all pairs of records: by automatic answers alone, and when every review is answered rightly at once

The data is found in SEMEL_TEST_DATA or ../shared/data; without it there is nothing to measure."""

import argparse
import csv
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CELLS = ["name", "given", "family", "email", "phone", "company", "region", "postcode", "born"]
PEOPLE = {"given": "given_name", "family": "surname", "postcode": "postcode", "born": "date_of_birth", "phone": "phone_number"}
# Folder, whose national numbers are understood, and which column is what.
SETS = [
    ("leads_dev", "", {"name": "name", "email": "email", "phone": "phone", "company": "company", "region": "country"}),
    ("fake_1000", "GB", {"given": "first_name", "family": "surname", "born": "dob", "email": "email"}),
    ("febrl1", "AU", PEOPLE),
    ("febrl3", "AU", PEOPLE),
    ("febrl_phone_1000", "AU", PEOPLE),
    ("fodors_zagat", "US", {"company": "name", "phone": "phone"}),
]


def clean(text):
    return " ".join(text.replace("\0", " ").split())


def lines_of(folder, columns):
    with open(folder / "truth.csv", encoding="utf-8") as file:
        truth = {row["id"]: row["cluster"] for row in csv.DictReader(file)}
    numbers = {name: number for number, name in enumerate(dict.fromkeys(truth.values()))}
    with open(folder / "records.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cells = [str(numbers[truth[row["id"]]]), row.get("source", "0")]
            cells += [clean(row.get(columns.get(name, ""), "") or "") for name in CELLS]
            yield "\t".join(cells)


def run(binary, region, text, *words):
    result = subprocess.run([binary, region, *words], input=text, capture_output=True, text=True, check=True)
    rows = [line.split() for line in result.stdout.splitlines() if not line.startswith("#")]
    shown = [line for line in result.stdout.splitlines() if line.startswith("#")]
    return {name: int(value) for name, value in rows}, shown


def share(part, whole):
    return part / whole if whole else 1.0


def pairs(counts):
    precision, recall = share(counts["pairs_both"], counts["pairs_found"]), share(counts["pairs_both"], counts["pairs_wanted"])
    return precision, recall, share(2 * precision * recall, precision + recall)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one folder of the data")
    parser.add_argument("--show", action="store_true", help="print every false merge, review and miss")
    options = parser.parse_args()
    data = pathlib.Path(os.environ.get("SEMEL_TEST_DATA") or ROOT.parent / "shared" / "data") / "leads"
    if not data.is_dir():
        sys.exit(f"bench: there is no {data}: nothing to measure")
    print("| data | records | automatic: right / wrong, precision | review, of which the lead is shown | pairs, automatic alone: P / R / F1 | reviews answered: P / R / F1 | µs: normalise / keys / compare |")
    print("|---|---|---|---|---|---|---|")
    for name, region, columns in SETS:
        if options.only and options.only != name:
            continue
        text = "\n".join(lines_of(data / name, columns)) + "\n"
        alone, shown = run(os.environ["MATCH_BINARY"], region, text, "alone", *(["show"] if options.show else []))
        answered, _ = run(os.environ["MATCH_BINARY"], region, text, "answered")
        right = alone["auto_right"] + alone["bridged_right"]
        wrong = alone["auto_wrong"] + alone["bridged_wrong"]
        records = alone["records"]
        speed = (alone["make_ns"] / records / 1000, alone["keys_ns"] / records / 1000, alone["compare_ns"] / max(alone["compares"], 1) / 1000)
        print(f"| {name} | {records} | {right} / {wrong}, {share(right, right + wrong):.4f} | {answered['review']} ({share(answered['review'], records):.1%}), "
              f"{share(answered['review_right'], answered['review']):.0%} | " + " / ".join(f"{x:.4f}" for x in pairs(alone)) + " | "
              + " / ".join(f"{x:.4f}" for x in pairs(answered)) + " | " + " / ".join(f"{x:.1f}" for x in speed) + " |", flush=True)
        print("\n".join(shown), end="\n" if shown else "")


if __name__ == "__main__":
    main()
