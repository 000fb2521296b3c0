// The benchmark tree `policy-10k`: 10,000 rule files in 100 folders and one RPZ file of 1,000,000 lines, the
// same bytes in every run. Owns the tree only; what is measured on it is the benchmarks'.
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';

export interface TreeSize {
  readonly files: number;
  readonly rpzLines: number;
}

export const policy10k: TreeSize = { files: 10_000, rpzLines: 1_000_000 };

/** A small generator of its own, so that every machine makes the same tree. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state;
  };
}

/** Writes the tree below `directory`, which must not exist. */
export function writePolicyTree(directory: string, size: TreeSize): void {
  const next = numbers(42);
  mkdirSync(directory, { recursive: true });
  for (let index = 0; index < size.files; index++) {
    const folder = join(directory, `rules-${index % 100}`);
    mkdirSync(folder, { recursive: true });
    const lines = Array.from(
      { length: 20 + (next() % 120) },
      () => `allow user-${next() % 9973} on zone-${next() % 997}`,
    );
    writeFileSync(join(folder, `rule-${index}.conf`), `${lines.join('\n')}\n`);
  }
  const rpz = openSync(join(directory, 'block.rpz'), 'wx');
  const perChunk = 10_000;
  for (let line = 0; line < size.rpzLines; line += perChunk) {
    const chunk = Array.from({ length: perChunk }, () => `host-${next().toString(36)}.example.com CNAME .`);
    writeSync(rpz, `${chunk.join('\n')}\n`);
  }
  closeSync(rpz);
}
