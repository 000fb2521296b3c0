// `writ doctor`, check `proxy`: the proxy of each URL, the setting that it comes from, and whether its files can be read. The environment
// of a running agent is compared with that of this command. Opens no connection; check-server and check-fleet connect through the proxy.
import { isDeepStrictEqual } from 'node:util';
import { isWritError } from '../../core/errors.js';
import type { ProxyUse } from '../../core/proxy-rules.js';
import { createProxies, ownProxyUses, proxyHeaders, readProxyCa } from '../../platform/net/proxies.js';
import { agentReportOf, type Checks, type DoctorContext } from './doctor-context.js';
import { type CheckFailure, failOf, type Judged, ok, warn } from './judged.js';

/**
 * @returns the check `proxy`; none without a valid configuration, and none where neither this command nor the agent
 * uses a proxy
 */
export function proxyChecks({ config, hostStatus }: DoctorContext): Checks {
  if (config === undefined) return [];
  const report = agentReportOf({ hostStatus });
  const agent = report === undefined ? undefined : (report.proxies ?? []);
  const uses = ownProxyUses(config);
  if (uses.length + (agent?.length ?? 0) === 0) return [];
  return [
    [
      'proxy',
      () =>
        judgeProxies({ uses, agent, failure: uses.map(({ url }) => findProxyFailure(url, config.proxy)) }),
    ],
  ];
}

/** Reads the credentials and certificates that a connection through the proxy would read. */
function findProxyFailure(
  url: string,
  setting: NonNullable<DoctorContext['config']>['proxy'],
): CheckFailure | undefined {
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
  /** The proxies of this command. */
  readonly uses: readonly ProxyUse[];
  /** The proxies of the running agent; undefined if none answers. */
  readonly agent: readonly ProxyUse[] | undefined;
  /** For each of `uses`, why it cannot be used; undefined if it can. */
  readonly failure: readonly (CheckFailure | undefined)[];
}

/** @returns a finding for each URL, and a warning if the running agent uses other proxies than this command */
export function judgeProxies({ uses, agent, failure }: ProxyFacts): Judged[] {
  const judged = uses.map((use, index): Judged => {
    const found = failure[index];
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
