// An agent's site with a first release: what the tests of the agent as a whole start from.
import * as fs from 'node:fs';
import type { TempDir } from '../disk/temp-dir.js';
import { type AgentSite, agentSite } from './agent-in-process.js';

export const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });
export const minuteMs = 60_000;

/**
 * @param keys further keys of the agent's configuration
 * @returns a site with a published release 1 and an agent that has not started
 */
export async function siteWithRelease(
  dir: TempDir,
  keys: Record<string, unknown> = {},
  options: { readonly nowMs?: number } = {},
): Promise<AgentSite> {
  const site = agentSite(dir, keys, options);
  await site.repository.publish(zone(1));
  return site;
}

/** @returns the content of the zone file in the active policy. Fails the test where none is active. */
export function active(site: AgentSite): string {
  return fs.readFileSync(`${site.paths.current}/dns-edge/block.rpz`, 'utf8');
}
