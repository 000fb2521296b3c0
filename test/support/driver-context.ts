// What a driver gets in a test: a silent log, the real clock, a private run directory.
import { systemClock } from '../../src/platform/clock.js';
import { createDurableFs } from '../../src/platform/durable-fs.js';
import { silentLog } from '../../src/platform/log.js';
import type { DriverContext } from '../../src/workers/driver.js';

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
