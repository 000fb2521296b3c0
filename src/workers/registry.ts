// The table of drivers: adding one is one file and one row here.
import { command } from './command.js';
import type { DriverKind } from './driver.js';
import { http } from './http.js';
import { kresd } from './kresd.js';
import { line } from './line.js';
import { native } from './native.js';
import { signal } from './signal.js';
import { supervisord } from './supervisord.js';
import { systemd } from './systemd.js';

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
