// Which code an input reaches, as V8 counts it: what is new leads the fuzzer. Asks for the blocks that ran since it last
// asked, and knows those of all before. Needs no instrumented build, and no package.
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
  /** True when something ran since the last look that never ran before; it is then known. */
  hasNew(): boolean;
  /** As hasNew, and what is new stays so. */
  showsNew(): boolean;
}

/**
 * V8 counts the blocks of what is run for the first time while it measures: what ran before, or is measured a second time, is
 * counted by whole functions. So this is called once in a process, and early.
 * @param isLookedAt by the URL of a script
 * @returns makes a coverage that knows nothing yet
 */
export function measureCoverage(isLookedAt: (url: string) => boolean): () => Coverage {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const look = (known: Known, keep: 'keep' | 'leave'): boolean => {
    let isNew = false;
    for (const { url, functions } of takeScripts(session)) {
      if (!isLookedAt(url)) continue;
      for (const { ranges } of functions) isNew = marks(known, url, ranges, keep) || isNew;
    }
    return isNew;
  };
  return () => {
    const known: Known = new Map();
    return { hasNew: () => look(known, 'keep'), showsNew: () => look(known, 'leave') };
  };
}

/** Of each function, which of its characters ran. */
type Known = Map<string, Uint8Array>;

/** It answers within the call: the session is of this thread. */
function takeScripts(session: Session): readonly Script[] {
  let scripts: readonly Script[] = [];
  session.post('Profiler.takePreciseCoverage', (error, answer) => {
    if (error !== null) throw error;
    scripts = answer.result;
  });
  return scripts;
}

/** @param ranges of one function: the whole, then blocks inside it whose count is another */
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
