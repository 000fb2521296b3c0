// A holder of a generation as one line, for tests to compare.
import type { GenerationUser } from '../../../src/core/status/mount-table.js';

/** As `41 cwd 4711 /path`. */
export function holderLine({ directory: held, what, pid, path }: GenerationUser): string {
  return [held.kind === 'generation' ? held.generation : held.tree, what, pid ?? '-', path].join(' ');
}
