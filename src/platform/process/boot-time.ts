// The boot time of this host by its wall clock. If the clock was set since, there is more than one boot time, and a time in a
// file is based on one of them. Reads /proc and one device.
import * as fs from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import { readProcText } from './proc-files.js';

export interface BootTimes {
  /** Epoch milliseconds of the boot: by the current clock, and by the clock at the boot if known. */
  readonly bootAtMs: readonly number[];
  /** Milliseconds since the boot. */
  readonly uptimeMs: number;
}

const maxStatBytes = 4_000_000;
/** The kernel creates this device at the boot, and its time never changes later. */
const deviceOfBoot = '/dev/full';

/** @returns undefined if the kernel does not report it */
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
