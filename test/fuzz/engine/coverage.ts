// Measures with V8 which code an input reaches, because new code leads the fuzzer. It reads the blocks that ran since the
// last read, and stores those of all earlier reads. Needs no instrumented build and no package.
import { Session } from 'node:inspector';

interface Script {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
}

interface Range {
  readonly startOffset: number;
  readonly endOffset: number;
  readonly count: number;
}

export interface Coverage {
  /** Whether code ran since the last read that never ran before. That code is then known. */
  hasNew(): boolean;
  /** As hasNew, but that code stays unknown. */
  showsNew(): boolean;
}

/**
 * Starts the measurement. V8 counts blocks only for code that first runs during the measurement, and otherwise whole functions.
 * For that reason call this once in a process, and early.
 * @param isMeasured by the URL of a script
 * @returns a function that makes a coverage without known code
 */
export function measureCoverage(isMeasured: (url: string) => boolean): () => Coverage {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const readCoverage = (known: Known, keep: 'keep' | 'leave'): boolean => {
    let isNew = false;
    for (const { url, functions } of takeScripts(session)) {
      if (!isMeasured(url)) continue;
      for (const { ranges } of functions) isNew = marks(known, url, ranges, keep) || isNew;
    }
    return isNew;
  };
  return () => {
    const known: Known = new Map();
    return { hasNew: () => readCoverage(known, 'keep'), showsNew: () => readCoverage(known, 'leave') };
  };
}

/** By function: 1 for each character that ran. */
type Known = Map<string, Uint8Array>;

/** The callback runs within the call, because the session is of this thread. */
function takeScripts(session: Session): readonly Script[] {
  let scripts: readonly Script[] = [];
  session.post('Profiler.takePreciseCoverage', (error, answer) => {
    if (error !== null) throw error;
    scripts = answer.result;
  });
  return scripts;
}

/** @param ranges of one function: the complete one, then inner blocks with another count */
function marks(known: Known, url: string, ranges: readonly Range[], keep: 'keep' | 'leave') {
  const [whole] = ranges;
  if (whole === undefined || whole.count === 0) return false;
  const { startOffset, endOffset } = whole;
  const ran = new Uint8Array(endOffset - startOffset);
  for (const range of ranges) {
    ran.fill(range.count > 0 ? 1 : 0, range.startOffset - startOffset, range.endOffset - startOffset);
  }
  const key = `${url}:${startOffset}`;
  const before = known.get(key) ?? new Uint8Array(ran.length);
  const isNew = ran.some((byte, at) => byte > (before[at] ?? 0));
  if (isNew && keep === 'keep') {
    known.set(
      key,
      ran.map((byte, at) => Math.max(byte, before[at] ?? 0)),
    );
  }
  return isNew;
}
