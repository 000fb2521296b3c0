// A generation user as one line, to compare in tests.
import type { GenerationUser } from '../../../src/core/status/mount-table.js';

/** @returns as `41 cwd 4711 /path` */
export function holderLine({ directory: held, what, pid, path }: GenerationUser): string {
  return [held.kind === 'generation' ? held.generation : held.tree, what, pid ?? '-', path].join(' ');
}
