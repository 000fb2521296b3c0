// The pages of docs/daemons have each line that makes the daemon serve the example. A harness that adds a line without its page
// tests a configuration that no reader has.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { tempDir } from '../kit/disk/temp-dir.js';
import { blocksOf } from '../kit/pages/page-commands.js';
import { projectRoot } from '../kit/sources/source-files.js';
import { daemons } from '../truth/daemons/all.js';
import type { Daemon } from '../truth/parts/daemon.js';

type Reasons = Readonly<Record<string, string>>;

const ports = [61_001, 61_002, 61_003] as const;
const pageOf = (name: string): string => readFileSync(join(projectRoot, `docs/daemons/${name}.md`), 'utf8');

/** Lines of every harness: the paths of its files, and the begin of a section. */
const ofEachHarness = /DIRECTORY|PORT|^[[\]{}\w:-]*[[{:\]}]$|^[}\s]*$|^#/;

/** Lines of the harness of `npm run truth` that its page may omit, with the reason. */
const ofHarness: Readonly<Record<string, Reasons>> = {
  bind: {
    'key own { algorithm hmac-sha256': 'rndc.key of the package is absent here; the page names it',
    'secret "c2VjcmV0IG9mIGEgdGVzdCwgbm8gc2VjcmV0IQ=="': 'as the key',
    '} keys { own': 'as the key',
    'options { default-key own': 'as the key',
    'default-server 127.0.0.1': 'as the key',
    'listen-on-v6 { none': 'other daemons have the addresses of this machine',
    'session-keyfile none': 'a directory of its own',
    'recursion no': 'no network',
    'notify no': 'no secondaries',
    'dnssec-validation no': 'no network, and zones of its own are not validated',
  },
  unbound: {
    'chroot: ""': 'a directory of its own; Debian has no chroot either',
    'username: ""': 'a directory of its own; the packages are tried with their user',
    'use-syslog: no': 'logging',
    'do-daemonize: no': 'the harness is its parent',
  },
  nginx: {
    'user www-data': 'of the file of Debian',
    'worker_processes 2': 'of the file of Debian, with another number',
    'daemon off': 'the harness is its parent',
    'include /etc/nginx/modules-enabled/*.conf': 'of the file of Debian',
    'events { worker_connections 768': 'of the file of Debian',
    'http { include /etc/nginx/mime.types': 'of the file of Debian',
    'return 204': 'shows the harness that nginx is up, without a policy',
  },
  prometheus: { 'global: { scrape_interval: 1h }': 'nothing to scrape' },
  knot: { '- target: stdout': 'logging', 'any: info': 'logging' },
  nsd: {
    'username: ""': 'a directory of its own',
    'chroot: ""': 'a directory of its own; Debian has no chroot either',
    'database: ""': 'a directory of its own; Debian has no database either',
    'server-count: 1': 'one server is the default',
  },
  'pdns-recursor': {
    'local-address=127.0.0.1': 'other daemons have the addresses of this machine',
    'disable-syslog=yes': 'logging',
    'write-pid=yes': 'the unit of Debian writes none; the page names the file',
    'daemon=no': 'the harness is its parent',
    'threads=1': 'quick to start',
    'dnssec=off': 'no network',
    'hint-file=no': 'no network',
    'query-local-address=127.0.0.1': 'no network',
  },
  dnsmasq: {
    'listen-address=127.0.0.1': 'other daemons have the addresses of this machine',
    'bind-interfaces': 'other daemons have the addresses of this machine',
    'no-resolv': 'no network',
    'no-hosts': 'the names of this machine are not asked for',
  },
  squid: {
    'access_log none': 'logging',
    'cache_mem 8 MB': 'quick to start',
    'shutdown_lifetime 0 seconds': 'quick to end',
    'pinger_enable off': 'no network',
  },
  supervisord: { 'nodaemon=true': 'the harness is its parent', 'chmod=0700': 'a socket of its own' },
  postfix: {
    'compatibility_level = 3.6': 'of the file of Debian',
    'mynetworks = 127.0.0.0/8': 'of the file of Debian; the page names it',
    'mydestination = corp.test': 'the page names it',
    'local_recipient_maps =': 'recipients that the table does not refuse need no account here',
    'smtpd_client_restrictions =': 'the default',
    'smtpd_peername_lookup = no': 'no network',
    'alias_maps =': 'no account receives mail here',
    'inet_protocols = ipv4': 'other daemons have the addresses of this machine',
    'inet_interfaces = 127.0.0.1': 'other daemons have the addresses of this machine',
  },
  fail2ban: {
    'loglevel = INFO': 'logging',
    'syslogsocket = auto': 'logging',
    'dbfile = None': 'a directory of its own',
    'dbpurgeage = 1d': 'of the file of Debian',
    'dbmaxmatches = 10': 'of the file of Debian',
  },
};

/** Shell of `test/packages/units/daemons.js` around the lines of a page. */
const ofEachUnit = /^cat >|^END$|^[a-z-]+:$|^systemd-tmpfiles /;
const ofUnits: Readonly<Record<string, Reasons>> = {
  nginx: {
    "sed -i '/^pid /d' /etc/nginx/nginx.conf": 'the page requires it',
    "sed -i '/^http {/a include /var/lib/writ/policy/current/web/*.conf": 'the line of the page',
    "' /etc/nginx/nginx.conf": 'the end of that command',
    'rm /etc/nginx/sites-enabled/default': 'the page requires it',
  },
  bind: {
    "sed -i 's/listen-on-v6.*/listen-on { 127.0.0.1": 'unbound has the other address',
    "/' /etc/bind/named.conf.options": 'the end of that command',
  },
  unbound: { 'interface: 127.0.0.2': 'named has the other address' },
  nsd: { 'ip-address: 127.0.0.3': 'named has the other address' },
  'pdns-recursor': {
    "sed -i 's/^local-address=.*/local-address=127.0.0.4/' /etc/powerdns/recursor.conf":
      'named has the other address',
  },
};

interface UnitDaemon {
  readonly name: string;
  readonly setUp: string;
  readonly places: readonly (readonly [onPage: string, here: string])[];
}

const placed = (text: string, places: UnitDaemon['places']): string =>
  places.reduce((made, [onPage, here]) => made.replaceAll(onPage, here), text);

/** Files of a harness that do not configure the daemon. */
const noConfiguration: Readonly<Record<string, readonly string[]>> = {
  kresd: ['rpz-check.conf'],
  postfix: ['master.cf'],
  supervisord: ['worker.sh'],
  varnish: ['boot.vcl'],
};

/** Harnesses that need root or the daemon's own files after they have written its configuration. */
const mayFail = ['postfix', 'nftables'];

function filesBelow(directory: string): readonly string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return entry.isFile() && statSync(path).size < 100_000 ? [path] : [];
  });
}

function linesOf(text: string): readonly string[] {
  return text
    .split(/\n|;/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

/** @returns the lines that the harness writes for the daemon if its page has none */
function linesOfHarness(daemon: Daemon): readonly string[] {
  using dir = tempDir();
  const instance = daemon.open({ dir: dir.path, policy: '/var/lib/writ/policy', ports });
  if (daemon.name !== 'nftables')
    try {
      instance.prepare('');
    } catch (error) {
      if (!mayFail.includes(daemon.name)) throw error;
    }
  const skipped = noConfiguration[daemon.name] ?? [];
  const files = filesBelow(dir.path).filter((path) => !skipped.some((name) => path.endsWith(`/${name}`)));
  const text = files.map((path) => readFileSync(path, 'utf8')).join('\n');
  const inPlace = ports.reduce<string>((made, port) => made.replaceAll(String(port), 'PORT'), text);
  return linesOf(inPlace.replaceAll(dir.path, 'DIRECTORY'));
}

const isOnPage = (page: string, line: string): boolean => page.replace(/\s+/g, ' ').includes(line);

describe('docs/daemons', () => {
  for (const daemon of daemons)
    it(`has each line that the harness of ${daemon.name} adds, or the reason why it has not`, () => {
      const page = pageOf(daemon.name);
      const reasons = ofHarness[daemon.name] ?? {};
      const added = linesOfHarness(daemon).filter(
        (line) => !ofEachHarness.test(line) && !isOnPage(page, line),
      );
      assert.deepEqual([...new Set(added)].sort(), Object.keys(reasons).sort());
    });

  it('has each line that the harness adds under the units of Debian, or the reason why it has not', async () => {
    const path = pathToFileURL(join(projectRoot, 'test/packages/units/daemons.js')).href;
    const { unitDaemons } = (await import(path)) as { readonly unitDaemons: readonly UnitDaemon[] };
    for (const { name, setUp, places } of unitDaemons) {
      const page = pageOf(name);
      const own = new Set(blocksOf(page, 'conf').flatMap((block) => linesOf(placed(block, places))));
      const reasons = ofUnits[name] ?? {};
      const added = linesOf(setUp).filter(
        (line) => !own.has(line) && !ofEachUnit.test(line) && !isOnPage(page, line),
      );
      assert.deepEqual([...new Set(added)].sort(), Object.keys(reasons).sort(), name);
    }
  });
});
