// The table of drivers: adding one is one file and one row here.
import type { DriverKind } from './driver.js';
import { kresd } from './kresd.js';

export const driverKinds: readonly DriverKind[] = [kresd];
