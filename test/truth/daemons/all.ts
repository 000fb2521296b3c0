// All tested daemons, in the order of the page.

import type { Daemon } from '../parts/daemon.js';
import { bind } from './bind.js';
import { bird } from './bird.js';
import { cfengine } from './cfengine.js';
import { dnsmasq } from './dnsmasq.js';
import { fail2ban } from './fail2ban.js';
import { haproxy } from './haproxy.js';
import { knot } from './knot.js';
import { kresd } from './kresd.js';
import { native } from './native.js';
import { nftables } from './nftables.js';
import { nginx } from './nginx.js';
import { nsd } from './nsd.js';
import { pdnsRecursor } from './pdns-recursor.js';
import { postfix } from './postfix.js';
import { prometheus } from './prometheus.js';
import { squid } from './squid.js';
import { supervisord } from './supervisord.js';
import { unbound } from './unbound.js';
import { varnish } from './varnish.js';

export const daemons: readonly Daemon[] = [
  kresd,
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
  squid,
  cfengine,
  supervisord,
  varnish,
  fail2ban,
  postfix,
  native,
];
