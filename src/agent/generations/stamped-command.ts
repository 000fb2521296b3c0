// Fills in the stamps of a probe command, such as {serial}, {source} and {serial:BUNDLE}, from the records of a generation.
// The caller chooses the generation. Reads only.
import { stampPlaceholder } from '../../core/config/probe-rules.js';
import { sourceName } from '../../core/release/stamps.js';
import type { HostPaths } from '../state/paths.js';
import { readNamedReleases } from './generation-contents.js';

type Command = readonly [string, ...string[]];

/** @returns whether an argument of the command contains a stamp that a release fills in */
export function hasStamp(run: Command): boolean {
  return run.some((text) => new RegExp(stampPlaceholder).test(text));
}

/**
 * Fills in the stamps of a probe command.
 * @param options.uses bundles of the group; a stamp without a bundle refers to the first
 * @returns undefined if a named bundle has no release in this generation
 */
export function stampedCommand(
  paths: HostPaths,
  run: Command,
  { generation, uses }: { readonly generation: number; readonly uses: readonly string[] },
): Command | undefined {
  const releases = readNamedReleases(paths, generation);
  let isMissing = false;
  const fill = (text: string): string =>
    text.replaceAll(new RegExp(stampPlaceholder, 'g'), (whole, what: string, named = uses[0]) => {
      const release = releases.find((one) => one.bundle === named);
      if (release === undefined) isMissing = true;
      if (release === undefined) return whole;
      return what === 'serial' ? String(release.serial) : sourceName(release);
    });
  const [program, ...args] = run;
  const filled: Command = [fill(program), ...args.map(fill)];
  return isMissing ? undefined : filled;
}
