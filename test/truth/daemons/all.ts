// All daemons that are tried, in the order of the page.
import { bind } from './bind.js';
import type { Daemon } from './daemon.js';
import { dnsmasq } from './dnsmasq.js';
import { nginx } from './nginx.js';

export const daemons: readonly Daemon[] = [bind, nginx, dnsmasq];
