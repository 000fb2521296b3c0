// The supervisord driver with a socket, and processes as supervisord describes them.
import type { Driver } from '../../../src/workers/contract/driver.js';
import { supervisord } from '../../../src/workers/drivers/supervisord.js';
import { driverContext } from './driver-context.js';

export const running = { state: 20, stateName: 'RUNNING', pid: 100 };
export const stopped = { state: 0, stateName: 'STOPPED', pid: 0 };

/** @param options of the driver, without its socket */
export function driverOf(
  socket: string,
  options: object = { group: 'web', signal: 'HUP' },
  context = driverContext(),
): Driver {
  return supervisord.create({ supervisord: socket, ...options }, context);
}
