#!/usr/bin/env python3
"""A native worker in Python: takes a limit from Writ, by docs/native-protocol.md. Usage: worker.py SOCKET [NAME]"""
import json, os, random, socket, sys, time

def load(generation):  # raises for a policy that this worker cannot use: the reason of its nack
    with open(os.path.join(generation, "limits", "limits.json"), encoding="utf-8") as file:
        limit = json.load(file)["requestsPerMinute"]
    if type(limit) is not int or limit < 1:
        raise ValueError(f"limits.json: requestsPerMinute is {limit!r}, and not a number above 0")
    return limit

def listen(path, name):  # yields at each policy that it took; ends with the connection
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path); say = lambda message: connection.sendall(json.dumps(message).encode() + b"\n")
        say({"writ": 1, "version": "0.1.0"}); say({"type": "hello", "name": name, "pid": os.getpid(), "ping": True})
        for message in map(json.loads, connection.makefile(encoding="utf-8")):
            if message.get("type") == "ping": say({"type": "pong", "id": message["id"]})
            if message.get("type") != "generation": continue
            answer = {"id": message["id"], "generation": message["generation"]}
            try: limit = load(message["path"])
            except Exception as error: say({"type": "nack", "reason": str(error)[:500], **answer})
            else:
                yield message["generation"], limit  # in use when we come back here: only then the ack
                say({"type": "ack", **answer})

pause = 0.05
while True:
    try:
        for generation, limit in listen(sys.argv[1], (sys.argv + ["limits"])[2]):
            print(f"generation {generation}: {limit} requests per minute", flush=True)
            pause = 0.05
    except (OSError, ValueError) as error: print(f"no agent, going on as before: {error}", file=sys.stderr)
    time.sleep((pause := min(pause * 2, 5)) * random.uniform(0.5, 1))
