#!/usr/bin/env python3
"""Where each nanosecond of a record goes. README.md beside this says how it is counted.

    budget.py [-b BUILD] [-p PICK,...] [-s SECONDS] [--no-callgrind] [--no-perf] [--keep]

Run from the project's root, as root. Exit status: 0 if all pass the criteria, 1 if not, 2 usage."""
import argparse
import collections
import fnmatch
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
WARM_S = 2
RECORDS = 4_000_000_000  # more than a run delivers: it is ended once it has been looked at
BURST = 1000             # records of an event of `src`
SIZES = (100, 300)       # bursts of the two runs under callgrind
FREQUENCY = 1999
LONGEST_NS = 10**9 // FREQUENCY  # that a sample stands for: the clock skips periods in which the processor idles
CALLERS = 12             # of a function that callgrind keeps apart


class Hops:
    """hops.txt, as far as it is about one pick."""

    def __init__(self, pick):
        self.lines, self.rests, self.floors, self.names = [], [], {}, []
        ours = False
        for line in open(os.path.join(HERE, "hops.txt")):
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "table":
                ours = pick in words[1:]
            elif ours and words[0] == "floor":
                self.floors[words[1]] = [part for part in words[2:] if part != "+"]
            elif ours and words[0] == "rest":
                self._name(words[1])
                self.rests.append((words[1], words[2]))
            elif ours:
                self._add(*words[1:])
        self.known = {}

    def _name(self, hop):
        if hop not in self.names:
            self.names.append(hop)

    def _add(self, hop, threads, pattern):
        lib = pattern.startswith("lib:")
        self.lines.append((hop, threads, lib, re.compile(pattern[4:] if lib else pattern)))
        self._name(hop)

    def of_function(self, thread, function, lib):
        key = thread, function, lib
        if key not in self.known:
            self.known[key] = next((hop for hop, threads, is_lib, pattern in self.lines
                                    if fnmatch.fnmatchcase(thread, threads)
                                    and pattern.fullmatch(lib if is_lib else function)), None)
        return self.known[key]

    def of_chain(self, thread, chain):
        """`chain`: (function, shared object), the innermost first."""
        named = next(filter(None, (self.of_function(thread, *call) for call in chain)), None)
        return named or next((hop for hop, threads in self.rests if fnmatch.fnmatchcase(thread, threads)), None)

    def floor(self, hop, floors, switches):
        """ns a record, or None."""
        total = 0.0
        for part in self.floors.get(hop, []):
            times, _, name = part.rpartition("*")
            total += floors[name] * (switches if times == "switches" else float(times or 1))
        return total or None


# --- the hosts of a run ---

class Host:
    def __init__(self, pid, config):
        self.pid, self.config = pid, config
        self.url = "http://" + re.search(r"^http\s*=\s*(\S+)", open(config).read(), re.M)[1]
        role = re.search(r"-(sender|receiver)\.conf$", config)
        self.prefix = role[1] + "/" if role else ""

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=20) as reply:
            return reply.read().decode()

    def cpu_ns(self):
        return time.clock_gettime_ns(~self.pid << 3 | 2)  # clock_getcpuclockid(3), all threads and workers

    def records(self):
        return json.loads(self.get("/apps/d1/state"))["records"]

    def wakes(self):
        return sum(float(line.split()[-1]) for line in self.get("/metrics").splitlines()
                   if line.startswith("pure_io_wakes_total"))

    def switches(self):
        """Of all its threads, workers among them: how often one stopped running."""
        total = 0
        for path in glob.glob(f"/proc/{self.pid}/task/*/status"):
            try:
                total += sum(map(int, re.findall(r"voluntary_ctxt_switches:\s+(\d+)", open(path).read())))
            except OSError:
                pass  # a worker that has ended
        return total


def children(parent):
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = open(path).read().rpartition(")")[2].split()
            pid = int(path.split("/")[2])
            argv = open(f"/proc/{pid}/cmdline").read().split("\0")
        except OSError:
            continue
        if int(fields[1]) == parent and "run" in argv:
            yield pid, argv[argv.index("-c") + 1]


def hosts_of(bench, pick):
    """The receiving one last."""
    wanted = 2 if pick.endswith("-durable") else 1
    for _ in range(200):
        found = sorted(children(bench.pid), key=lambda child: "receiver" in child[1])
        if len(found) == wanted:
            return [Host(*child) for child in found]
        time.sleep(0.05)
    sys.exit(f"budget: {pick}: its hosts do not start")


Look = collections.namedtuple("Look", "ns cpu_ns records wakes switches")


def look(hosts):
    wakes = sum(host.wakes() for host in hosts)
    records = hosts[-1].records()
    switches = sum(host.switches() for host in hosts)
    return Look(time.monotonic_ns(), sum(host.cpu_ns() for host in hosts), records, wakes, switches)


def end_bench(bench, build):
    """Its hosts die with it; what they stored is of no use."""
    bench.send_signal(signal.SIGTERM)
    bench.wait()
    for store in glob.glob(f"{build}/bench/run/*.store"):
        shutil.rmtree(store, ignore_errors=True)


# --- perf ---

def wait_until_warm(hosts):
    for _ in range(100):
        try:
            if hosts[-1].records() > 0:
                break
        except OSError:
            pass
        time.sleep(0.1)
    time.sleep(WARM_S)


def record(build, pick, seconds, data):
    """Samples into `data`; returns the hosts and the two looks between which they count."""
    command = [f"{build}/bench/bench", "-b", build, "-o", os.devnull, "-p", pick, "-r", "1", "-n", str(RECORDS)]
    bench = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        hosts = hosts_of(bench, pick)
        wait_until_warm(hosts)
        perf = subprocess.Popen(["perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-F", str(FREQUENCY), "-g", "-a", "-o", data])
        time.sleep(1)
        first = look(hosts)
        time.sleep(seconds)
        last = look(hosts)
        time.sleep(0.2)
        perf.send_signal(signal.SIGINT)
        perf.wait()
    finally:
        end_bench(bench, build)
    return hosts, first, last


def samples(data):
    """(pid, thread, processor, monotonic ns, chain) of each."""
    script = subprocess.run(["perf", "script", "-i", data, "-F", "comm,pid,tid,cpu,time,ip,sym,dso", "--ns"],
                            capture_output=True, text=True, check=True).stdout
    head = re.compile(r"(.+?)\s+(-?\d+)/-?\d+\s+\[(\d+)\]\s+(\d+)\.(\d+):")
    frame = re.compile(r"\s*[0-9a-f]+ (.*) \((.*)\)$")
    for block in script.split("\n\n"):
        lines = block.strip("\n").split("\n")
        match = head.match(lines[0].strip())
        if not match:
            continue
        calls = [(call[1], os.path.basename(call[2])) for call in map(frame.match, lines[1:]) if call]
        yield int(match[2]), match[1], match[3], int(match[4]) * 10**9 + int(match[5].ljust(9, "0")), calls


def sampled(pick, hops, build, seconds, keep):
    """ns of each hop, and of the chains of each."""
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(keep or directory, f"{pick}.perf")
        hosts, first, last = record(build, pick, seconds, data)
        prefix, before = {host.pid: host.prefix for host in hosts}, {}
        ns, chains = collections.Counter(), collections.defaultdict(collections.Counter)
        for pid, thread, processor, at, chain in samples(data):
            span = min(at - before.get(processor, at), LONGEST_NS)
            before[processor] = at
            if pid not in prefix or not first.ns <= at <= last.ns:
                continue
            thread = prefix[pid] + thread
            hop = hops.of_chain(thread, chain)
            ns[hop] += span
            chains[hop][thread + " " + " < ".join(call[0] for call in chain[:4])] += span
        return ns, chains, first, last


# --- callgrind ---

def start_under_callgrind(build, config, out):
    host = Host(0, config)
    process = subprocess.Popen(
        ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--separate-callers={CALLERS}",
         f"--callgrind-out-file={out}", f"{build}/bench/pure-host-epoll", "run", "-c", config],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            host.get("/status")
            host.pid = process.pid
            return process, host
        except OSError:
            time.sleep(0.1)
    process.kill()
    sys.exit(f"budget: no host under callgrind with {config}")


def give(host, bursts):
    body = b"\n".join([b"1"] * 10) + b"\n"
    for _ in range(bursts // 10):
        request = urllib.request.Request(host.url + "/apps/src/events/burst", body,
                                         {"Content-Type": "application/x-ndjson"})
        urllib.request.urlopen(request, timeout=60).read()


def names_of_threads(pid):
    """In the order of their creation, which is callgrind's numbering from 1 on. (The first is valgrind's.)"""
    tids = sorted(int(tid) for tid in os.listdir(f"/proc/{pid}/task"))
    return ["pure-host"] + [open(f"/proc/{pid}/task/{tid}/comm").read().strip() for tid in tids[1:]]


def instructions_of(path, names, hops):
    """Self cost by hop and chain of one thread's file. With callers kept apart a function's name is the chain."""
    counts, thread, function, known, calls = collections.Counter(), None, None, {}, False
    libs, lib = {}, ""
    for line in open(path):
        line = line.rstrip("\n")
        if line.startswith("thread: "):
            thread = names[int(line[8:]) - 1] if int(line[8:]) <= len(names) else "ended"
        elif line.startswith("ob="):
            number, _, name = line[3:].partition(" ")
            lib = os.path.basename(libs.setdefault(number, name))
        elif line.startswith("fn="):
            function = expand(line[3:], known)
        elif line.startswith("cfn="):
            expand(line[4:], known)
        elif line.startswith("cob="):
            number, _, name = line[4:].partition(" ")
            libs.setdefault(number, name)
        elif line.startswith("calls="):
            calls = True
        elif re.match(r"[0-9+*-]", line):
            if not calls:
                chain = [(name, lib if i == 0 else "") for i, name in enumerate(function.split("'"))]
                hop = hops.of_chain(thread, [(re.sub(r"\.(part|constprop|isra)\.\d+$", "", n), l) for n, l in chain])
                counts[hop, thread + " " + " < ".join(name for name, _ in chain[:3])] += int(line.split()[1])
            calls = False
    return counts


def expand(text, known):
    """Names are told once, behind their number."""
    number, _, name = text.partition(" ")
    return known.setdefault(number, name) if name else known[number]


def run_of(build, configs, bursts, hops):
    counts = collections.Counter()
    with tempfile.TemporaryDirectory() as directory:
        started = [start_under_callgrind(build, config, f"{directory}/{i}") for i, config in enumerate(configs)]
        give(started[0][1], bursts)
        while started[-1][1].records() < bursts * BURST:
            time.sleep(0.2)
        for i, (process, host) in enumerate(started):
            names = [host.prefix + name for name in names_of_threads(host.pid)]
            process.send_signal(signal.SIGTERM)
            process.wait()
            for path in glob.glob(f"{directory}/{i}-*"):
                counts += instructions_of(path, names, hops)
    return counts


def instructions(pick, hops, build):
    """Instructions a record by hop and chain."""
    parts = ("-sender", "-receiver") if pick.endswith("-durable") else ("",)
    configs = [f"{build}/bench/run/{pick}-uring{part}.conf" for part in parts]
    few, many = (run_of(build, configs, bursts, hops) for bursts in SIZES)
    return {key: (many[key] - few[key]) / ((SIZES[1] - SIZES[0]) * BURST) for key in many}


# --- the table ---

def print_table(pick, hops, times, counts, floors, most):
    print(f"\n{pick}")
    print(f"{'hop':10}{'share %':>9}{'ns':>8}{'floor ns':>10}{'ratio':>7}{'instructions':>14}")
    ns, chains, first, last = times or (collections.Counter(), {}, None, None)
    records = last.records - first.records if last else 1
    switches = (last.switches - first.switches) / records if last else 0
    total = sum(ns.values()) or 1
    for hop in hops.names + [None]:
        cost, floor = ns[hop] / records, hops.floor(hop, floors, switches)
        count = sum(some for (of, _), some in counts.items() if of == hop) if counts else None
        print(f"{hop or '(none)':10}{100 * ns[hop] / total:9.1f}{cost:8.2f}", end="")
        print(f"{floor:10.2f}{cost / floor:7.1f}" if floor else f"{'-':>10}{'-':>7}", end="")
        print(f"{count:14.1f}" if count is not None else f"{'-':>14}")
    print(f"{'sum':10}{100:9.1f}{total / records:8.2f}{'':17}{sum(counts.values()):14.1f}")
    for hop in hops.names + [None] if most else ():
        print(f"  {hop or '(none)'}")
        for chain, part in chains[hop].most_common(most) if times else ():
            print(f"{part / records:10.2f} ns            {chain}")
        mine = sorted(((some, chain) for (of, chain), some in counts.items() if of == hop), reverse=True)
        for some, chain in mine[:most]:
            print(f"{some:10.2f} instructions  {chain}")
    return judge(ns, first, last, total) if last else True


def judge(ns, first, last, total):
    records, cpu = last.records - first.records, last.cpu_ns - first.cpu_ns
    within, beside = total / cpu, ns[None] / total
    good = 0.9 <= within <= 1.1 and beside <= 0.05
    print(f"CPU clock {cpu / records:.2f} ns a record; sampled {100 * within:.1f} % of it, {100 * beside:.1f} % in no hop;"
          f" {records / (last.ns - first.ns) * 1000:.2f} M records/s,"
          f" {(last.wakes - first.wakes) / records * 1e6:.0f} wakes and"
          f" {(last.switches - first.switches) / records * 1e6:.0f} switches a million: {'passes' if good else 'FAILS'}")
    return good


def read_floors(build):
    lines = subprocess.run([f"{build}/bench/floor"], capture_output=True, text=True, check=True).stdout
    print(lines, end="")
    return {words[0]: float(words[1]) for words in map(str.split, lines.splitlines()) if len(words) > 1}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("-b", "--build", default="build/budget")
    options.add_argument("-p", "--picks", default="links-1,wires-1,links-1-durable")
    options.add_argument("-s", "--seconds", type=float, default=5)
    options.add_argument("--no-callgrind", action="store_true")
    options.add_argument("--no-perf", action="store_true", help="instructions alone, of configurations that are there")
    options.add_argument("-f", "--functions", type=int, default=0, help="of each hop, so many call chains")
    options.add_argument("--keep", help="a directory for perf's data")
    given = options.parse_args()
    build, good = os.path.abspath(given.build), True
    floors = read_floors(build)
    for pick in given.picks.split(","):
        hops = Hops(pick)
        times = None if given.no_perf else sampled(pick, hops, build, given.seconds, given.keep)
        counts = {} if given.no_callgrind else instructions(pick, hops, build)
        good &= print_table(pick, hops, times, counts, floors, given.functions)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
