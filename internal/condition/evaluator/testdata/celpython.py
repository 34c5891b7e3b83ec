"""Evaluates conditions with cel-python, for TestVerdictsAreThoseOfCELInPython.

Reads lines of JSON, {"expr": text, "event": data as text, "ce": attributes}, and
writes one line for each: {"result": "true", "false", "error" or "refused", "reason": text}.
Numbers of the data are read as the evaluator reads them without a schema.
"""

import json
import reprlib
import resource
import signal
import sys

import celpy

sys.setrecursionlimit(10_000)

# A text times a number is repeated as often: that must not take the machine.
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
SECONDS = 5

short = reprlib.Repr()
short.maxstring = short.maxother = 500


class TooLong(Exception):
    pass


def interrupt(_signal, _frame):
    raise TooLong()


def whole(text):
    number = int(text)
    if -(2**63) <= number < 2**63:
        return number
    return float(text)


def decide(environment, expression, variables):
    try:
        program = environment.program(environment.compile(expression))
    except Exception as problem:
        return "refused", type(problem).__name__
    signal.alarm(SECONDS)
    try:
        result = program.evaluate(variables)
    except Exception as problem:
        return "error", f"{type(problem).__name__}: {short.repr(problem.args)}"
    finally:
        signal.alarm(0)
    if not isinstance(result, (bool, celpy.celtypes.BoolType)):
        return "error", "no boolean: " + type(result).__name__
    return ("true" if result else "false"), ""


def main():
    signal.signal(signal.SIGALRM, interrupt)
    environment = celpy.Environment()
    for line in sys.stdin:
        case = json.loads(line)
        attributes = celpy.json_to_cel(case["ce"])
        attributes["time"] = celpy.celtypes.TimestampType(case["ce"]["time"])
        event = celpy.json_to_cel(json.loads(case["event"], parse_int=whole))
        result, reason = decide(environment, case["expr"], {"event": event, "ce": attributes})
        print(json.dumps({"result": result, "reason": reason}), flush=True)


main()
