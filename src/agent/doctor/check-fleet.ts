// `writ doctor` on the fleet server of this host: whether it answers, whether the host has enrolled, and whether the token for
// that can be read. Asks the server for its health alone, signs and sends nothing; the judge is pure.
import type { FleetConfig } from '../../core/config/config.js';
import { errorCodes } from '../../core/error-codes.js';
import { toWritError } from '../../core/errors.js';
import { defaultTransportLimits } from '../../core/limits.js';
import type { FleetStatus } from '../../core/status/status.js';
import { openHttpClient } from '../../platform/net/http-client.js';
import { createProxies } from '../../platform/net/proxies.js';
import { readSmallFile } from '../../platform/read-file.js';
import { readCa } from '../startup/open-host.js';
import { type Checks, type DoctorContext, reportOf } from './doctor-context.js';
import { fail, type Judged, ok, warn } from './judged.js';

export function fleetChecks(context: DoctorContext): Checks {
  const { fleet } = context.config ?? {};
  if (fleet === undefined) return [];
  return [['fleet', async () => judgeFleet(await fleetFacts(fleet, context))]];
}

interface Away {
  readonly text: string;
  /** What to do about a proxy; `curl` would not take the one of the configuration. */
  readonly next?: string;
}

export interface FleetFacts {
  readonly url: string;
  /** Why the server does not answer. */
  readonly away?: Away | undefined;
  readonly tokenFile: string;
  /** Why the token cannot be read. */
  readonly tokenUnread?: string | undefined;
  /** As the agent says it; left out where none has said it yet. */
  readonly status?: FleetStatus | undefined;
  readonly nowMs: number;
}

const maxTokenBytes = 4096;

async function fleetFacts(fleet: FleetConfig, context: DoctorContext): Promise<FleetFacts> {
  const { url, tokenFile } = fleet;
  const token = readSmallFile(tokenFile, { maxBytes: maxTokenBytes });
  const tokenUnread = token.kind === 'read' ? undefined : token.why;
  const status = reportOf(context)?.fleet;
  return {
    url,
    tokenFile,
    tokenUnread,
    status,
    away: await whyAway(fleet, context),
    nowMs: context.clock.nowMs(),
  };
}

const connectTimeoutMs = 5000;
const totalTimeoutMs = 15_000;

async function whyAway(
  { url, ca }: FleetConfig,
  { clock, version, config }: DoctorContext,
): Promise<Away | undefined> {
  try {
    const limits = { ...(config?.transport ?? defaultTransportLimits), connectTimeoutMs };
    const trusted = ca === undefined ? {} : { ca: readCa(ca) };
    const base = new URL(url.endsWith('/') ? url : `${url}/`);
    const door = openHttpClient(base, {
      limits,
      clock,
      version,
      redirects: [],
      proxies: createProxies(config?.proxy),
      ...trusted,
    });
    try {
      await door.load();
      const exchange = await door.open({ path: 'healthz', totalTimeoutMs });
      await exchange.end();
      if (exchange.status === 200) return undefined;
      return { text: `${url}: its /healthz answers ${exchange.status}` };
    } finally {
      await door.close();
    }
  } catch (error) {
    const { message: text, facts, hint } = toWritError(error);
    return facts['proxy'] === undefined ? { text } : { text, next: hint };
  }
}

/** What stops the reports is worse than a server that is away for a while: those are sent later. */
export function judgeFleet({ url, away, tokenFile, tokenUnread, status, nowMs }: FleetFacts): Judged {
  const { state, problem, acknowledgedAtMs } = status ?? {};
  const isEnrolled = state === 'reporting' || acknowledgedAtMs !== undefined;
  if (!isEnrolled && tokenUnread !== undefined) {
    const hint = errorCodes.FLEET_TOKEN_UNREADABLE.hint;
    return fail(`${tokenFile}: ${tokenUnread}; the host cannot enrol`, hint, 'FLEET_TOKEN_UNREADABLE');
  }
  if (problem !== undefined) return { ...warn(problem.message, problem.hint), code: problem.code };
  if (away !== undefined) return warn(`no answer: ${away.text}`, away.next ?? `curl -sv ${url}`);
  if (state === 'waiting')
    return warn(`${url} answers; a person has to approve this host`, errorCodes.FLEET_KEY_WAITING.hint);
  if (!isEnrolled) return ok(`${url} answers, ${tokenFile} can be read; not enrolled yet`);
  if (acknowledgedAtMs === undefined) return ok(`${url} answers, enrolled, no report yet`);
  return ok(`${url} answers, last report ${Math.round(Math.max(nowMs - acknowledgedAtMs, 0) / 1000)} s ago`);
}
