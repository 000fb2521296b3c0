// When this host booted, by its wall clock. The clock may have been set since: then the host has more than one boot time,
// and a time in a file was written by one of them. Reads /proc and one device; writes nothing.
import * as fs from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import { readProcText } from './proc-files.js';

export interface BootTimes {
  /** Epoch milliseconds at which the host booted: by the clock of now, and by the clock of the boot where that is known. */
  readonly bootAtMs: readonly number[];
  /** How long the host has been up. */
  readonly uptimeMs: number;
}

const maxStatBytes = 4_000_000;
/** The kernel makes this device when it boots, and nothing changes its time later. */
const deviceOfBoot = '/dev/full';

/** @returns undefined where the kernel does not say */
export function readBootTimes(): BootTimes | undefined {
  const bootSeconds = Number(/^btime (\d+)$/m.exec(readProcText('/proc/stat', maxStatBytes) ?? '')?.[1]);
  const uptimeSeconds = Number(/^(\d+\.\d+) /.exec(readProcText('/proc/uptime', 200) ?? '')?.[1]);
  if (Number.isNaN(bootSeconds) || Number.isNaN(uptimeSeconds)) return undefined;
  const firstMs = deviceTimeMs();
  return {
    bootAtMs: [bootSeconds * 1000, ...(firstMs === undefined ? [] : [firstMs])],
    uptimeMs: uptimeSeconds * 1000,
  };
}

function deviceTimeMs(): number | undefined {
  try {
    return fs.statSync(deviceOfBoot).mtimeMs;
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}
