// A service for a machine under systemd that shows the policy it uses, and the worker group that notifies and probes its
// instances.
import { existsSync, readFileSync } from 'node:fs';
import type { MachineDisk } from './booted-systemd.js';

/** Reads its policy at its start and at SIGHUP, and writes it to a file with its name. */
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

/** Exits with 0 if both instances use the policy in {current}. */
const probe = 'cmp "$1"/dns-edge/block.rpz /var/lib/web/1 && cmp "$1"/dns-edge/block.rpz /var/lib/web/2';

/** A worker group of agent.yaml: web@1.service and web@2.service. */
export const webGroup = {
  name: 'web',
  uses: ['dns-edge'],
  reset: { systemd: 'web@*.service', timeout: '60s' },
  probe: { run: ['sh', '-c', probe, 'sh', '{current}'], retry: 20 },
} as const;

export interface Web {
  /** @returns the policy that an instance uses */
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
