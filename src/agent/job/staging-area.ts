// The private directory of one cycle, made when it is first needed (a cycle with nothing to do writes nothing) and removed when the
// cycle ends. The next start removes the areas that a crash left, and collection those that could not be removed.
import { join } from 'node:path';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import { listEntries } from '../../platform/read-file.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Host } from '../state/host.js';
import type { HostPaths } from '../state/paths.js';

export interface StagingArea {
  /** The cycle's directory; made at the first call. */
  path(): string;
  /** A new directory in it. */
  directory(name: string): string;
  /** The next call makes it again. Never throws: the cycle's result stands, and what is left is swept by sweepStaging. */
  remove(log: Logger): void;
}

/**
 * Creates the handle of the private directory of a cycle. Makes no directory before the first use. Throws nothing itself.
 * @param cycle the cycle's id: its name in `staging/`
 * @returns the area. `path` is `staging/<cycle>`, with mode 0711; `remove` does nothing if no directory was made
 * @throws (its methods) WritError DISK_* if `path` or `directory` cannot make a directory; `directory` also for a name that
 *   exists
 */
export function openStagingArea(paths: HostPaths, durable: DurableFs, cycle: string): StagingArea {
  const root = join(paths.staging, cycle);
  let made = false;
  const path = (): string => {
    if (made) return root;
    // A person may have removed it while the agent runs.
    durable.ensureDirectory('prepare.private', paths.staging, 0o700);
    // Other users reach a candidate in it by its path, and cannot list the directory.
    durable.makeDirectory('stage.area', root, 0o711);
    made = true;
    return root;
  };
  return {
    path,
    directory: (name) => {
      const directory = join(path(), name);
      durable.makeDirectory('stage.directory', directory, 0o711);
      return directory;
    },
    remove: (log) => {
      if (made) removeArea({ durable, log }, root);
      made = false;
    },
  };
}

/** Removes the areas that could not be removed, because an agent may run for months without a start. No job may run. */
export function sweepStaging(host: Pick<Host, 'paths' | 'durable' | 'log'>): void {
  const areas = listEntries(host.paths.staging).filter(
    (one) => one.isDirectory() && one.name.startsWith('c-'),
  );
  for (const { name } of areas) removeArea(host, join(host.paths.staging, name));
}

function removeArea({ durable, log }: Pick<Host, 'durable' | 'log'>, path: string): void {
  try {
    durable.removeTree('stage.sweep', path);
  } catch (error) {
    log.warn({ err: error, path }, 'a staging area could not be removed');
  }
}
