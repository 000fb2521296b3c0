// nftables in its own network namespace: a table with the version in its comment and in its only element.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { joinVersions, stdoutOf } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

function table(version: string, more = ''): string {
  return `table inet site
delete table inet site
table inet site {
  comment "${stampPlaceholder}"
  set blocked { type ipv4_addr; elements = { 192.0.2.${version.slice(1)} }; }
  chain input { type filter hook input priority 0; ip saddr @blocked drop; ${more} }
}
`;
}

export const nftables: Daemon = {
  name: 'nftables',
  packages: ['nftables', 'util-linux'],
  programs: ['nft', 'unshare', 'nsenter'],
  process: 'none',
  stamps: ['policy.nft'],
  good: (version) => ({ 'policy.nft': table(version) }),
  bad: (version) => ({ 'policy.nft': table(version).replace('set blocked', 'sot blocked') }),
  half: (version) => ({ 'policy.nft': table(version, 'ip saddr @missing drop;') }),
  empty: async (instance) => {
    await instance.control?.('flush', 'ruleset');
  },
  open: ({ dir, policy }) => {
    const namespace = join(dir, 'net');
    const under = ['nsenter', `--net=${namespace}`];
    const control = (...args: string[]): Promise<string | undefined> =>
      stdoutOf('nsenter', `--net=${namespace}`, 'nft', ...args);
    let isMade = false;
    const make = (): void => {
      if (isMade) return;
      writeFileSync(namespace, '');
      execFileSync('unshare', [`--net=${namespace}`, 'true']);
      isMade = true;
    };
    const unmake = async (): Promise<void> => {
      if (isMade) execFileSync('umount', [namespace]);
      isMade = false;
    };
    return {
      places: [['/var/lib/writ/policy', policy]],
      prepare: make,
      start: async () => undefined,
      kill: async () => undefined,
      stopAndGo: () => undefined,
      [Symbol.asyncDispose]: unmake,
      under,
      control,
      ask: async () => {
        const text = (await control('list', 'table', 'inet', 'site')) ?? '';
        const element = /192\.0\.2\.(\d+)/.exec(text)?.[1];
        return joinVersions([/comment "(v\d+)"/.exec(text)?.[1], element && `v${element}`]);
      },
    };
  },
};
