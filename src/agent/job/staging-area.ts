// The private directory of one cycle, made when it is first needed (a cycle with nothing to do writes nothing)
// and swept when the cycle ends. What a crash left is swept at the next start.
import { join } from 'node:path';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { HostPaths } from '../state/paths.js';

export interface StagingArea {
  /** The cycle's directory; made at the first call. */
  path(): string;
  /** A new directory in it. */
  directory(name: string): string;
  /** Never throws: the cycle's result stands, and what is left is swept at the next start. */
  remove(log: Logger): void;
}

/** @param cycle the cycle's id: its name in `staging/` */
export function openStagingArea(paths: HostPaths, durable: DurableFs, cycle: string): StagingArea {
  const root = join(paths.staging, cycle);
  let made = false;
  const path = (): string => {
    // Others may pass through, to reach a candidate by its path, and can list nothing.
    if (!made) durable.makeDirectory('stage.area', root, 0o711);
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
      try {
        if (made) durable.removeTree('stage.sweep', root);
      } catch (error) {
        log.warn({ err: error, path: root }, 'a staging area could not be removed');
      }
    },
  };
}
