// The table of drivers: adding one is one file and one row here.

import type { DriverKind } from './contract/driver.js';
import { command } from './drivers/command.js';
import { http } from './drivers/http.js';
import { kresd } from './drivers/kresd.js';
import { line } from './drivers/line.js';
import { native } from './drivers/native.js';
import { signal } from './drivers/signal.js';
import { supervisord } from './drivers/supervisord.js';
import { systemd } from './drivers/systemd.js';

export const driverKinds: readonly DriverKind[] = [
  kresd,
  native,
  signal,
  supervisord,
  systemd,
  http,
  line,
  command,
];
