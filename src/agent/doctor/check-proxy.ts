// `writ doctor` on the proxies of this host: which one each URL is fetched through, what names it, and whether its files can be read.
// The agent's own environment counts where an agent runs. Connects to nothing; check-server and check-fleet do, through the proxy.
import { isDeepStrictEqual } from 'node:util';
import { isWritError } from '../../core/errors.js';
import type { ProxyUse } from '../../core/proxy-rules.js';
import { createProxies, ownProxyUses, proxyHeaders, readProxyCa } from '../../platform/net/proxies.js';
import { agentReportOf, type Checks, type DoctorContext } from './doctor-context.js';
import { failOf, type Judged, ok, type Trouble, warn } from './judged.js';

export function proxyChecks({ config, hostStatus }: DoctorContext): Checks {
  if (config === undefined) return [];
  const report = agentReportOf({ hostStatus });
  const agent = report === undefined ? undefined : (report.proxies ?? []);
  const uses = ownProxyUses(config);
  if (uses.length + (agent?.length ?? 0) === 0) return [];
  return [
    [
      'proxy',
      () => judgeProxies({ uses, agent, trouble: uses.map(({ url }) => troubleOf(url, config.proxy)) }),
    ],
  ];
}

/** Reads what a connection would read. */
function troubleOf(url: string, setting: NonNullable<DoctorContext['config']>['proxy']): Trouble | undefined {
  try {
    const route = createProxies(setting)(new URL(url));
    if (route !== undefined) [proxyHeaders(route), readProxyCa(route)];
    return undefined;
  } catch (error) {
    if (isWritError(error)) return error;
    throw error;
  }
}

export interface ProxyFacts {
  /** Of this command. */
  readonly uses: readonly ProxyUse[];
  /** Of the running agent; undefined where none answers. */
  readonly agent: readonly ProxyUse[] | undefined;
  /** What is wrong with each of `uses`. */
  readonly trouble: readonly (Trouble | undefined)[];
}

export function judgeProxies({ uses, agent, trouble }: ProxyFacts): Judged[] {
  const judged = uses.map((use, index): Judged => {
    const found = trouble[index];
    return found === undefined ? ok(useText(use)) : failOf(found);
  });
  if (agent === undefined || isDeepStrictEqual(uses, agent)) return judged;
  const text = agent.length === 0 ? 'no proxy' : agent.map(useText).join('; ');
  const next = 'set `proxy` in the configuration, so that the environment does not matter';
  return [...judged, warn(`the running agent has another environment: ${text}`, next)];
}

function useText({ url, proxy, from, why }: ProxyUse): string {
  if (why !== undefined) return `${url}: the proxy of ${from} ${why}`;
  return proxy === undefined ? `${url}: no proxy (${from})` : `${url}: through ${proxy} (${from})`;
}
