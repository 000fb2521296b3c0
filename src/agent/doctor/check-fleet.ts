// `writ doctor`, check `fleet`: whether the fleet server answers, whether this host has enrolled, and whether its enrolment token can
// be read. Requests only /healthz of the server: no report is signed or sent. `judgeFleet` is pure.
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

/** @returns the check `fleet`; none where no fleet server is configured */
export function fleetChecks(context: DoctorContext): Checks {
  const { fleet } = context.config ?? {};
  if (fleet === undefined) return [];
  return [['fleet', async () => judgeFleet(await fleetFacts(fleet, context))]];
}

interface ConnectFailure {
  readonly text: string;
  /** The fix for a failure of a proxy; `curl` would not use the proxy of the configuration. */
  readonly next?: string;
}

export interface FleetFacts {
  readonly url: string;
  /** Why the server does not answer; undefined if it answers. */
  readonly connectFailure?: ConnectFailure | undefined;
  readonly tokenFile: string;
  /** Why the token cannot be read; undefined if it can. */
  readonly tokenUnread?: string | undefined;
  /** From the status of the agent; left out without one. */
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
    connectFailure: await findConnectFailure(fleet, context),
    nowMs: context.clock.nowMs(),
  };
}

const connectTimeoutMs = 5000;
const totalTimeoutMs = 15_000;

async function findConnectFailure(
  { url, ca }: FleetConfig,
  { clock, version, config }: DoctorContext,
): Promise<ConnectFailure | undefined> {
  try {
    const limits = { ...(config?.transport ?? defaultTransportLimits), connectTimeoutMs };
    const trusted = ca === undefined ? {} : { ca: readCa(ca) };
    const base = new URL(url.endsWith('/') ? url : `${url}/`);
    const client = openHttpClient(base, {
      limits,
      clock,
      version,
      redirects: [],
      proxies: createProxies(config?.proxy),
      ...trusted,
    });
    try {
      await client.load();
      const exchange = await client.open({ path: 'healthz', totalTimeoutMs });
      await exchange.end();
      if (exchange.status === 200) return undefined;
      return { text: `${url}: its /healthz answers ${exchange.status}` };
    } finally {
      await client.close();
    }
  } catch (error) {
    const { message: text, facts, hint } = toWritError(error);
    return facts['proxy'] === undefined ? { text } : { text, next: hint };
  }
}

/** A problem that stops reports outranks an unreachable server: the host sends its reports when the server is back. */
export function judgeFleet({
  url,
  connectFailure,
  tokenFile,
  tokenUnread,
  status,
  nowMs,
}: FleetFacts): Judged {
  const { state, problem, acknowledgedAtMs } = status ?? {};
  const isEnrolled = state === 'reporting' || acknowledgedAtMs !== undefined;
  if (!isEnrolled && tokenUnread !== undefined) {
    const hint = errorCodes.FLEET_TOKEN_UNREADABLE.hint;
    return fail(`${tokenFile}: ${tokenUnread}; the host cannot enrol`, hint, 'FLEET_TOKEN_UNREADABLE');
  }
  if (problem !== undefined) return { ...warn(problem.message, problem.hint), code: problem.code };
  if (connectFailure !== undefined)
    return warn(`no answer: ${connectFailure.text}`, connectFailure.next ?? `curl -sv ${url}`);
  if (state === 'waiting')
    return warn(`${url} answers; a person has to approve this host`, errorCodes.FLEET_KEY_WAITING.hint);
  if (!isEnrolled) return ok(`${url} answers, ${tokenFile} can be read; not enrolled yet`);
  if (acknowledgedAtMs === undefined) return ok(`${url} answers, enrolled, no report yet`);
  return ok(`${url} answers, last report ${Math.round(Math.max(nowMs - acknowledgedAtMs, 0) / 1000)} s ago`);
}
