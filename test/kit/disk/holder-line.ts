// A holder of a generation as one line, for tests to compare.
import type { Holder } from '../../../src/core/status/mount-table.js';

/** As `41 cwd 4711 /path`. */
export function holderLine({ held, what, pid, path }: Holder): string {
  return [held.kind === 'generation' ? held.generation : held.tree, what, pid ?? '-', path].join(' ');
}
