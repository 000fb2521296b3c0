// Nine daemons of Debian 12 under the units of their own packages: the configuration beyond the page of docs/daemons, and the
// query for each version. They differ in the unit type, Restart=, and the notification of a release, which affect a bake time.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { blocksOf } from '../../../dist/test/kit/pages/page-commands.js';
import { daemons as truthDaemons } from '../../../dist/test/truth/daemons/all.js';
import { placed, readRecipe } from '../../../dist/test/truth/rules/recipe.js';

const pages = join(import.meta.dirname, '../../../docs/daemons');
const include = (path) => `cat >>${path} <<'END'\n`;
const dig = (server, zone) => `dig +short +tries=1 +time=2 @${server} stamp.${zone} TXT | tr -d '"'`;

/**
 * @typedef {object} UnitDaemon
 * @property {string} name of its page
 * @property {string} unit
 * @property {readonly string[]} packages that are installed again, the one with the unit among them
 * @property {string} bundle of its own; pages share names
 * @property {import('../../../dist/test/truth/rules/recipe.js').Places} places paths that differ from those of the page
 * @property {number} port that its policy names
 * @property {true} [endsByHangup] SIGHUP ends it, so the test sends none
 * @property {(...own: string[]) => string} configure shell; `own` are the daemon's parts of the page
 * @property {string} ask shell that prints the version which the daemon serves
 */

/** @type {readonly UnitDaemon[]} */
const table = [
  {
    ...{ name: 'nginx', unit: 'nginx.service', packages: ['nginx', 'nginx-common'], bundle: 'web', port: 80 },
    places: [],
    configure: (own) => `sed -i '/^pid /d' /etc/nginx/nginx.conf
sed -i '/^http {/a ${own.trim()}' /etc/nginx/nginx.conf
rm /etc/nginx/sites-enabled/default`,
    ask: 'curl -sf --max-time 2 http://127.0.0.1/stamp',
  },
  {
    ...{ name: 'bind', unit: 'named.service', packages: ['bind9'], bundle: 'dns', port: 53 },
    places: [],
    configure: (own) => `${include('/etc/bind/named.conf.local')}${own}END
sed -i 's/listen-on-v6.*/listen-on { 127.0.0.1; };/' /etc/bind/named.conf.options`,
    ask: dig('127.0.0.1', 'lab.test'),
  },
  {
    ...{ name: 'unbound', unit: 'unbound.service', packages: ['unbound'], bundle: 'resolve', port: 53 },
    places: [
      ['name: dns', 'name: resolve'],
      ['[dns]', '[resolve]'],
      ['current/dns', 'current/resolve'],
    ],
    // named runs too, so it has another address.
    configure: (own) => `cat >/etc/unbound/unbound.conf.d/policy.conf <<'END'
server:
  interface: 127.0.0.2
${own}END`,
    ask: dig('127.0.0.2', 'corp.test'),
  },
  {
    ...{ name: 'haproxy', unit: 'haproxy.service', packages: ['haproxy'], bundle: 'balance', port: 8081 },
    places: [['http://127.0.0.1/', 'http://127.0.0.1:8081/']],
    // Its page has the command line without a unit first.
    configure: (_, own) => `${include('/etc/default/haproxy')}${own}END`,
    ask: 'curl -sf --max-time 2 http://127.0.0.1:8081/',
  },
  {
    ...{ name: 'bird', unit: 'bird.service', packages: ['bird2'], bundle: 'routes', port: 0 },
    places: [],
    configure: (own, directory) => `${include('/etc/bird/bird.conf')}router id 127.0.0.1;\n${own}END
${include('/etc/tmpfiles.d/bird.conf')}${directory}END
systemd-tmpfiles --create bird.conf`,
    ask: `birdc -r show route | sed -n 's/^198\\.51\\.100\\.\\([0-9]*\\).*/v\\1/p'`,
  },
  {
    ...{ name: 'squid', unit: 'squid.service', packages: ['squid'], bundle: 'proxy', port: 3128 },
    places: [],
    configure: (own) => `${include('/etc/squid/squid.conf')}${own}END`,
    ask: `curl -s --max-time 2 http://127.0.0.1:3128/ | sed -n 's/.* by \\(v[0-9]*\\)\\.corp.test.*/\\1/p'`,
  },
  {
    ...{ name: 'nsd', unit: 'nsd.service', packages: ['nsd'], bundle: 'zones', port: 53 },
    places: [
      ['name: dns', 'name: zones'],
      ['[dns]', '[zones]'],
      ['current/dns', 'current/zones'],
      ['@127.0.0.1', '@127.0.0.3'],
    ],
    configure: (own) => `cat >/etc/nsd/nsd.conf.d/policy.conf <<'END'
server:
  ip-address: 127.0.0.3
remote-control:
  control-enable: yes
  control-interface: /run/nsd/nsd.ctl
${own}END`,
    ask: dig('127.0.0.3', 'corp.test'),
  },
  {
    ...{ name: 'pdns-recursor', unit: 'pdns-recursor.service', packages: ['pdns-recursor'], bundle: 'names' },
    ...{ port: 53, endsByHangup: true },
    places: [
      ['name: dns', 'name: names'],
      ['[dns]', '[names]'],
      ['current/dns', 'current/names'],
      ['@127.0.0.1', '@127.0.0.4'],
    ],
    configure: (own) => `${include('/etc/powerdns/recursor.lua')}${own}END
sed -i 's/^local-address=.*/local-address=127.0.0.4/' /etc/powerdns/recursor.conf`,
    ask: dig('127.0.0.4', 'corp.test'),
  },
  {
    ...{ name: 'varnish', unit: 'varnish.service', packages: ['varnish'], bundle: 'cache', port: 6081 },
    places: [['http://127.0.0.1/', 'http://127.0.0.1:6081/']],
    configure: () => ':',
    ask: 'curl -sf --max-time 2 http://127.0.0.1:6081/',
  },
];

const withPlaces = (text, places) =>
  places.reduce((made, [onPage, here]) => made.replaceAll(onPage, here), text);

export const unitDaemons = table.map((daemon) => {
  const page = readFileSync(join(pages, `${daemon.name}.md`), 'utf8');
  const { agent } = placed(readRecipe(page), daemon.places);
  const own = blocksOf(page, 'conf').map((block) => withPlaces(block, daemon.places));
  const { good, bad, stamps = [] } = truthDaemons.find(({ name }) => name === daemon.name);
  return {
    ...daemon,
    ...{ agent, stamps },
    /** @returns shell that configures it as on its page, with the further steps of an operator */
    setUp: daemon.configure(...own),
    /** @returns the files of a release with the version `v` and its serial, or of a release that the check refuses */
    filesOf: (version, isRefused) =>
      (isRefused ? bad : good)(version, { dir: '/', policy: '/', ports: [daemon.port, 0, 0] }),
  };
});
