// The site of an agent with a first release, for tests of the complete agent.
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

/** @returns the zone file of the active policy; throws ENOENT without an active policy */
export function active(site: AgentSite): string {
  return fs.readFileSync(`${site.paths.current}/dns-edge/block.rpz`, 'utf8');
}
