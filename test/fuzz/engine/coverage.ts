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
  /** Forgets what ran since the last look. */
  skip(): void;
  /** True when something ran that never ran before; it is then known. */
  hasNew(): boolean;
  /** As hasNew, and what is new stays so. */
  showsNew(): boolean;
  close(): void;
}

/** @param isLookedAt by the URL of a script */
export function measureCoverage(isLookedAt: (url: string) => boolean): Coverage {
  const session = new Session();
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  const known = new Map<string, Uint8Array>();
  const look = (keep: 'keep' | 'leave'): boolean => {
    let isNew = false;
    for (const { url, functions } of takeScripts(session)) {
      if (!isLookedAt(url)) continue;
      for (const { ranges } of functions) isNew = marks(known, url, ranges, keep) || isNew;
    }
    return isNew;
  };
  return {
    skip: () => void takeScripts(session),
    hasNew: () => look('keep'),
    showsNew: () => look('leave'),
    close: () => session.disconnect(),
  };
}

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
function marks(
  known: Map<string, Uint8Array>,
  url: string,
  ranges: readonly Range[],
  keep: 'keep' | 'leave',
) {
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
