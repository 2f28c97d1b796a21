"""What `umbel dedup --exact` should print, by Python's csv and json: one case per line in, one answer per line out."""

import csv
import json
import re
import sys

csv.field_size_limit(1 << 30)


class Bad(Exception):
    """The record has no key."""


def lines_of(data):
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def parse(text, between):
    """The records of CSV, or the error."""
    lines = [line.decode("latin-1") for line in lines_of(text)]
    return [row or [""] for row in csv.reader(lines, delimiter=between, strict=True)]


def is_open(text, between):
    """Whether the text ends inside quotes."""
    try:
        parse(text, between)
    except csv.Error as error:
        return "unexpected end of data" in str(error)
    return False


def opening(text, between):
    """Where the last quoted field of a text that is wrong begins: the quote that follows a delimiter or an end of a line."""
    found, was_open = None, False
    for at in range(len(text)):
        now_open = is_open(text[: at + 1], between)
        if now_open and not was_open and text[at : at + 1] == b'"' and text[at - 1 : at] != b'"':
            found = at
        if now_open and not was_open and at == 0:
            found = at
        was_open = now_open
    return found


def csv_records(data, between):
    """Each record with its fields, or with None for a line that is left out because of its quote."""
    lines = lines_of(data)
    start = 0
    while start < len(lines):
        for count in range(1, len(lines) - start + 1):
            text = b"".join(lines[start : start + count])
            try:
                yield text, parse(text, between)[0]
                start += count
                break
            except csv.Error as error:
                if "unexpected end of data" in str(error) and start + count < len(lines):
                    continue
                # The lines up to the one on which the field begins.
                gone = text[: opening(text, between)].count(b"\n") + 1
                yield b"".join(lines[start : start + gone]), None
                start += gone
                break


class Number(str):
    """A number as it is written."""


def refuse(text):
    raise ValueError(text)


def json_value(content, pointer):
    try:
        value = json.loads(
            content.decode("utf-8"), parse_float=Number, parse_int=Number, parse_constant=refuse
        )
    except ValueError as error:
        raise Bad from error
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise Bad
    return value


def compact(value):
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(k, ensure_ascii=False) + ":" + compact(v) for k, v in value.items()) + "}"
    return json.dumps(value)


def json_part(content, pointer, typed):
    value = json_value(content, pointer)
    if isinstance(value, str) and not isinstance(value, Number):
        return (False, value)
    return (typed, compact(value))


def fields_of(content, between):
    return content.split(between.encode()) if between else content.split()


def pick(fields, wanted):
    parts = []
    for first, last in wanted:
        first = first - 1 if first > 0 else len(fields) + first
        last = last - 1 if last > 0 else len(fields) + last
        if not 0 <= first <= last < len(fields):
            raise Bad
        parts += fields[first : last + 1]
    return parts


def answer(case):
    data = bytes.fromhex(case["input"])
    out, seen, bad, code = b"", set(), 0, 0
    records = csv_records(data, case["between"]) if case["mode"] == "csv" else ((line, ()) for line in lines_of(data))
    for number, (record, fields) in enumerate(records):
        content = record[:-1] if record.endswith(b"\n") else record
        try:
            if fields is None:
                raise Bad
            if number == 0 and case.get("header"):
                out += record
                continue
            if case["mode"] == "csv":
                if max(case["columns"]) >= len(fields):
                    raise Bad
                key = tuple(fields[column] for column in case["columns"])
            elif case["mode"] == "json":
                key = tuple(json_part(content, pointer, case["typed"]) for pointer in case["pointers"])
            else:
                key = tuple(pick(fields_of(content, case["between"]), case["wanted"]))
        except Bad:
            bad += 1
            if not case["skip"]:
                code = 2
                break
            continue
        if key not in seen:
            seen.add(key)
            out += record
    return {"out": out.hex(), "bad": bad, "code": code}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))))
