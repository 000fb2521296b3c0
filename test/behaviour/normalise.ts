// What may differ between two runs of one story, and gets one word in both: process ids, durations, ports, paths of this
// run, the room on the disk. Keys, signatures, digests and random names are the same bytes in both (pinned-process.ts) and
// are left alone. A time is said from the start of the story, so that a life that became longer is seen.

export interface Surroundings {
  /** What is replaced as it stands, by its word: directories and ports. */
  readonly words: readonly (readonly [text: string, word: string])[];
  /** Epoch milliseconds at the start of the story. */
  readonly startMs: number;
}

/** Times within this long after the start are those of the story itself. */
const storyMs = 3_600_000;

const rules: readonly (readonly [RegExp, string])[] = [
  [/("(?:[a-zA-Z]*[dD]urationMs|ageMs|elapsedMs|tookMs|responseTime)":)\d+(?:\.\d+)?/g, '$1"DURATION"'],
  [/\b(in|after|took) \d+(?:\.\d+)? (?:ms|s)\b/g, '$1 DURATION'],
  [/\b\d+(?:\.\d+)? (?:s|ms) (ago|behind|ahead of)\b/g, 'DURATION $1'],
  // Where in the code an error of the log was made.
  [/("stack":)"(?:[^"\\]|\\.)*"/g, '$1"STACK"'],
  // Decimals are measured; what is configured is whole.
  [/\b\d+\.\d+ (?:s|ms)\b/g, 'DURATION'],
  // A process as the agent knows it again: boot, pid, start.
  [/\b[0-9a-f]{8}:\d+@\d+/g, 'PROCESS'],
  [/\b(Date|Last-Modified): [A-Z][a-z]{2}, .*/gi, '$1: TIME'],
  // Temporary names that the system gives.
  [/\b(writ-demo-|hook-)\w{6}\b/g, '$1NAME'],
  // Of the demo, which asks the system for a port.
  [/(\bDNS_PORT=| -p )\d{5}\b/g, '$1PORT'],
  [/\b127\.0\.0\.1:\d{5}\b/g, '127.0.0.1:PORT'],
  [/("retryInMs":)[\d.e-]+/g, '$1"DURATION"'],
  [/("(?:pid|mainPid|startTicks)":)\d+/g, '$1"PID"'],
  [/("port":)\d{5}\b/g, '$1"PORT"'],
  [/\b(pid|process|started) \d+/g, '$1 PID'],
  [/\b\d+(?:\.\d+)? [kMGT]?B free\b/g, 'ROOM free'],
  [/("(?:free|freeBytes|heapUsed|rss)":)\d+/g, '$1"ROOM"'],
];

/** Gives back the text with one word for everything that varies. */
export type Normaliser = (text: string) => string;

/** @returns one for all texts of a story, in their order: cycles are counted as they are first named */
export function createNormaliser({ words, startMs }: Surroundings): Normaliser {
  const longestFirst = [...words].sort(([a], [b]) => b.length - a.length);
  const cycles = new Map<string, string>();
  const cycleName = (id: string): string => {
    const name = cycles.get(id) ?? `c-${cycles.size + 1}`;
    cycles.set(id, name);
    return name;
  };
  return (text) => {
    const placed = longestFirst.reduce((rest, [word, name]) => rest.replaceAll(word, name), text);
    const timed = normaliseTimes(placed, startMs).replace(/\bc-[0-9a-f]{8}\b/g, cycleName);
    return rules.reduce((rest, [pattern, word]) => rest.replace(pattern, word), timed);
  };
}

function normaliseTimes(text: string, startMs: number): string {
  const said = (ms: number, whole: string): string => sinceStart(ms - startMs) ?? whole;
  return text
    .replace(/\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (whole) => said(Date.parse(whole), whole))
    .replace(/(?<![\w.])1[6-9]\d{11}(?![\w.])/g, (whole) => said(Number(whole), whole))
    .replace(/(?<![\w.])1[6-9]\d{8}(?![\w.])/g, (whole) => said(Number(whole) * 1000, whole));
}

/** @returns nothing for a time that has nothing to do with the story */
function sinceStart(offsetMs: number): string | undefined {
  const days = Math.floor(offsetMs / 86_400_000);
  if (Number.isNaN(offsetMs) || days < -1000 || days > 20_000) return undefined;
  if (offsetMs >= -1000 && offsetMs < storyMs) return 'NOW';
  return `NOW+${Math.floor(offsetMs / storyMs)}h`;
}
