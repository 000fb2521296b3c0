// Warnings about SOURCE: patterns that matched nothing, and properties that hosts will not have. People get one warning for
// each, programs get members of the result.
import type { SourceTree } from '../../publisher/archive/source-tree.js';
import type { Reporter } from '../console/command.js';

/** Reports a warning for each kind of finding with the first paths. Reports nothing for a tree without findings. */
export function warnOfSource(tree: SourceTree, reporter: Reporter): void {
  const { droppedDirectories, unusedPatterns, changedModes, hardLinks } = tree;
  const warn = (items: readonly string[], text: (count: string) => string): void => {
    if (items.length > 0) reporter.warn(`${text(String(items.length))}: ${firstOf(items)}`);
  };
  warn(unusedPatterns, (count) => `${plural(count, 'pattern')} to leave files out matched nothing`);
  warn(droppedDirectories, (count) => `${plural(count, 'directory', 'directories')} without a file left out`);
  const modes = changedModes.map(({ path, mode, hostMode }) => `${path} (${mode}, on hosts ${hostMode})`);
  warn(modes, (count) => `${plural(count, 'file')} with a mode that hosts will not have`);
  warn(
    hardLinks,
    (count) => `${plural(count, 'file')} with several names (hard links), separate files on hosts`,
  );
}

function plural(count: string, one: string, many = `${one}s`): string {
  return `${count} ${count === '1' ? one : many}`;
}

/** @returns the members for --json: excluded, unusedPatterns, droppedDirectories, changedModes, hardLinks */
export function sourceDetails(tree: SourceTree): Record<string, unknown> {
  const { excluded, unusedPatterns, droppedDirectories, changedModes, hardLinks } = tree;
  return { excluded, unusedPatterns, droppedDirectories, changedModes, hardLinks };
}

/** @returns at most 5 paths; ` ...` at the end stands for more */
export function firstOf(paths: readonly string[]): string {
  return `${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ' ...' : ''}`;
}
