// The site of an agent that reports to a fake fleet server, with a clock that advances while a test waits for sockets.
import { writeFileSync } from 'node:fs';
import { type AgentSite, agentSite } from '../agent/agent-in-process.js';
import { until } from '../assert/until.js';
import type { TempDir } from '../disk/temp-dir.js';
import type { FleetStandIn } from './fleet-server.js';

export interface FleetSite extends AgentSite {
  readonly tokenFile: string;
  /** Advances the clock until the condition is true. */
  untilSo(holds: () => boolean, stepMs?: number): Promise<void>;
}

/** @param keys of `fleet` in the configuration, over its defaults */
export function fleetSite(
  dir: TempDir,
  { url }: Pick<FleetStandIn, 'url'>,
  keys: Readonly<Record<string, unknown>> = {},
  others: Readonly<Record<string, unknown>> = {},
): FleetSite {
  const tokenFile = dir.join('token');
  writeFileSync(tokenFile, 'writ_host_good\n');
  const site = agentSite(dir, {
    ...{ poll: { every: '30m' }, host: { id: 'edge-1', labels: { site: 'fra' } } },
    ...{ fleet: { url, tokenFile, ...keys }, ...others },
  });
  return {
    ...site,
    tokenFile,
    untilSo: (holds, stepMs = 500) =>
      until(async () => {
        if (holds()) return true;
        await site.clock.advance(stepMs);
        return holds();
      }),
  };
}
