// A service of a test for a machine under systemd that shows which policy it uses, and the part of a configuration that
// tells its instances through systemd and asks them. Owns its files; what is expected of it is the tests'.
import { existsSync, readFileSync } from 'node:fs';
import type { MachineDisk } from './booted-systemd.js';

/** Reads policy at its start and at a SIGHUP, and shows what it uses as a file of its name. */
const program = `#!/bin/sh
shown=/var/lib/web/$1
use() { cat /var/lib/writ/policy/current/dns-edge/block.rpz >$shown.new && mv $shown.new $shown; }
trap use HUP
use
while :; do sleep 1000 & wait; kill $!; done
`;

const unit = `[Unit]
Wants=writ-policy.target
After=writ-policy.target
[Service]
ExecStart=/opt/web %i
ExecReload=/bin/kill -HUP $MAINPID
[Install]
WantedBy=multi-user.target
`;

/** Exits with 0 when both instances use what {current} has. */
const probe = 'cmp "$1"/dns-edge/block.rpz /var/lib/web/1 && cmp "$1"/dns-edge/block.rpz /var/lib/web/2';

/** A worker group of agent.yaml: web@1.service and web@2.service. */
export const webGroup = {
  name: 'web',
  uses: ['dns-edge'],
  reset: { systemd: 'web@*.service', timeout: '60s' },
  probe: { run: ['sh', '-c', probe, 'sh', '{current}'], retry: 20 },
} as const;

export interface Web {
  /** What an instance has read, as it shows it. */
  uses(instance: 1 | 2): string | undefined;
}

/** Installs `web@.service`. */
export function installWeb(disk: MachineDisk): Web {
  disk.write('/opt/web', program, 0o755);
  disk.write('/etc/systemd/system/web@.service', unit);
  disk.write('/var/lib/web/.keep', '');
  return {
    uses: (instance) => {
      const shown = disk.path(`/var/lib/web/${instance}`);
      return existsSync(shown) ? readFileSync(shown, 'utf8') : undefined;
    },
  };
}
