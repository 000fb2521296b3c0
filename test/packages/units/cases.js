// The events of the daemons within a bake time, as on Debian: by systemctl, by the maintainer scripts of their packages, by
// their own log rotation, by a slow start, by SIGKILL. Only the last one counts as a fault of the release.
import { existsSync } from 'node:fs';

/**
 * @typedef {object} UnitCase
 * @property {string} name the title of its column in docs/truth.md
 * @property {string} what
 * @property {'settles' | 'taken back'} expected
 * @property {(daemons: readonly import('./daemons.js').UnitDaemon[]) => string} script shell that runs in the machine
 */

const atOnce = (lines) => `${lines.map((line) => `{ ${line}; } &`).join('\n')}\nwait`;
const unitsOf = (daemons) => daemons.map(({ unit }) => unit).join(' ');

/** @type {readonly UnitCase[]} */
export const unitCases = [
  {
    name: 'restart',
    what: 'a person types `systemctl reload` where the unit has it, then `systemctl restart`',
    expected: 'settles',
    script: (daemons) =>
      atOnce(
        daemons.map(
          ({
            unit,
          }) => `if [ "$(systemctl show -P CanReload ${unit})" = yes ]; then systemctl reload ${unit}; fi
sleep 3 && systemctl restart ${unit}`,
        ),
      ),
  },
  {
    name: 'reinstall',
    what: '`apt-get install --reinstall` of its packages: their scripts restart it, reload it, or upgrade its program',
    expected: 'settles',
    script: () =>
      'apt-get install -y --reinstall -o Dpkg::Options::=--force-confold /given/debs/*.deb </dev/null',
  },
  {
    name: 'log rotation',
    what: '`logrotate -f` with its file of Debian where it has one (nginx, haproxy, squid); then SIGHUP to the main process (none to pdns-recursor, which it ends)',
    expected: 'settles',
    script: (daemons) =>
      [
        ...daemons
          .map(({ name }) => `/etc/logrotate.d/${name}`)
          .filter((path) => existsSync(path))
          .map((path) => `logrotate -f ${path}`),
        'sleep 3',
        ...daemons
          .filter(({ endsByHangup }) => !endsByHangup)
          .map(({ unit }) => `systemctl kill --kill-who=main --signal=HUP ${unit}`),
      ].join('\n'),
  },
  {
    name: 'slow start',
    what: 'a person restarts it while `ExecStartPre=/bin/sleep 60` is in a drop-in',
    expected: 'settles',
    script: (daemons) => `set -e
for unit in ${unitsOf(daemons)}; do
  printf '[Service]\\nExecStartPre=/bin/sleep 60\\n' >/etc/systemd/system/$unit.d/slow.conf
done
systemctl daemon-reload
systemctl restart ${unitsOf(daemons)}
rm /etc/systemd/system/*.d/slow.conf
systemctl daemon-reload`,
  },
  {
    name: 'kill',
    what: '`kill -9` of the main process',
    expected: 'taken back',
    script: (daemons) =>
      `kill -9 ${daemons.map(({ unit }) => `$(systemctl show -P MainPID ${unit})`).join(' ')}`,
  },
];
