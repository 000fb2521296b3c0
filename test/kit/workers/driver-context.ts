// The context of a driver in a test: a silent log, the real clock and a private run directory.

import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import type { DriverContext } from '../../../src/workers/contract/driver.js';

/** @param overrides members that replace the defaults; a driver with sockets needs a run directory */
export function driverContext(overrides: Partial<DriverContext> = {}): DriverContext {
  return {
    group: 'test',
    log: silentLog(),
    clock: systemClock,
    durable: createDurableFs(),
    runDirectory: '/nonexistent',
    ...overrides,
  };
}
