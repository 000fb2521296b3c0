// Replaces what may differ between two runs of one scenario by a placeholder: process ids, durations, ports, paths of this
// run, free disk space. Keys, signatures, digests and random names have equal bytes in both runs (pinned-process.ts) and stay.
// Times become offsets from the start of the scenario, so that a longer validity period is a difference.

export interface Surroundings {
  /** Texts with their placeholders: directories and ports. */
  readonly placeholders: readonly (readonly [text: string, placeholder: string])[];
  /** Epoch milliseconds at the start of the scenario. */
  readonly startMs: number;
}

/** Times up to this offset from the start are times of the scenario itself. */
const scenarioMs = 3_600_000;

const rules: readonly (readonly [RegExp, string])[] = [
  [/("(?:[a-zA-Z]*[dD]urationMs|ageMs|elapsedMs|tookMs|responseTime)":)\d+(?:\.\d+)?/g, '$1"DURATION"'],
  [/\b(in|after|took) \d+(?:\.\d+)? (?:ms|s)\b/g, '$1 DURATION'],
  [/\b\d+(?:\.\d+)? (?:s|ms) (ago|behind|ahead of)\b/g, 'DURATION $1'],
  // The place in the code where a logged error was created.
  [/("stack":)"(?:[^"\\]|\\.)*"/g, '$1"STACK"'],
  // Decimal durations are measured; configured durations are integers.
  [/\b\d+\.\d+ (?:s|ms)\b/g, 'DURATION'],
  // The identity of a process: boot, pid, start.
  [/\b[0-9a-f]{8}:\d+@\d+/g, 'PROCESS'],
  [/\b(Date|Last-Modified): [A-Z][a-z]{2}, .*/gi, '$1: TIME'],
  // Temporary names from the system.
  [/\b(writ-demo-|hook-)\w{6}\b/g, '$1NAME'],
  // The port of the demo, which the system chooses.
  [/(\bDNS_PORT=| -p )\d{5}\b/g, '$1PORT'],
  [/\b127\.0\.0\.1:\d{5}\b/g, '127.0.0.1:PORT'],
  [/("retryInMs":)[\d.e-]+/g, '$1"DURATION"'],
  [/("(?:pid|mainPid|startTicks)":)\d+/g, '$1"PID"'],
  [/("port":)\d{5}\b/g, '$1"PORT"'],
  [/\b(pid|process|started) \d+/g, '$1 PID'],
  [/\b\d+(?:\.\d+)? [kMGT]?B free\b/g, 'ROOM free'],
  [/("(?:free|freeBytes|heapUsed|rss)":)\d+/g, '$1"ROOM"'],
];

/** Returns the text with a placeholder for everything that varies. */
export type Normaliser = (text: string) => string;

/** @returns a normaliser for all texts of a scenario, in order: cycles are numbered at their first occurrence */
export function createNormaliser({ placeholders, startMs }: Surroundings): Normaliser {
  const longestFirst = [...placeholders].sort(([a], [b]) => b.length - a.length);
  const cycles = new Map<string, string>();
  const cycleName = (id: string): string => {
    const name = cycles.get(id) ?? `c-${cycles.size + 1}`;
    cycles.set(id, name);
    return name;
  };
  return (text) => {
    const placed = longestFirst.reduce(
      (rest, [placeholder, name]) => rest.replaceAll(placeholder, name),
      text,
    );
    const timed = normaliseTimes(placed, startMs).replace(/\bc-[0-9a-f]{8}\b/g, cycleName);
    return rules.reduce((rest, [pattern, placeholder]) => rest.replace(pattern, placeholder), timed);
  };
}

function normaliseTimes(text: string, startMs: number): string {
  const withOffset = (ms: number, match: string): string => sinceStart(ms - startMs) ?? match;
  return text
    .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (match) => withOffset(Date.parse(match), match))
    .replace(/(?<![\w.])1[6-9]\d{11}(?![\w.])/g, (match) => withOffset(Number(match), match))
    .replace(/(?<![\w.])1[6-9]\d{8}(?![\w.])/g, (match) => withOffset(Number(match) * 1000, match));
}

/** @returns undefined for a time that is unrelated to the scenario */
function sinceStart(offsetMs: number): string | undefined {
  const days = Math.floor(offsetMs / 86_400_000);
  if (Number.isNaN(offsetMs) || days < -1000 || days > 20_000) return undefined;
  if (offsetMs >= -1000 && offsetMs < scenarioMs) return 'NOW';
  return `NOW+${Math.floor(offsetMs / scenarioMs)}h`;
}
