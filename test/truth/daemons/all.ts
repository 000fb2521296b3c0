// All daemons that are tried, in the order of the page.
import { bind } from './bind.js';
import { bird } from './bird.js';
import type { Daemon } from './daemon.js';
import { dnsmasq } from './dnsmasq.js';
import { haproxy } from './haproxy.js';
import { knot } from './knot.js';
import { nftables } from './nftables.js';
import { nginx } from './nginx.js';
import { nsd } from './nsd.js';
import { pdnsRecursor } from './pdns-recursor.js';
import { prometheus } from './prometheus.js';
import { unbound } from './unbound.js';

export const daemons: readonly Daemon[] = [
  bind,
  unbound,
  nginx,
  haproxy,
  bird,
  prometheus,
  nftables,
  knot,
  nsd,
  pdnsRecursor,
  dnsmasq,
];
