// Notifies a webhook receiver of changed alarms. A lease lets one of several servers do it, and the store records what was sent, so
// that a restart repeats nothing. Runs in its own loop, so that reports do not wait for it. A slow or failing receiver costs one
// request at a time, with backoff. Owns the schedule and the retries; alarm-rules.ts decides what is an alarm.

import { randomUUID } from 'node:crypto';
import type { Kysely } from 'kysely';
import { computeBackoffMs } from '../../core/backoff.js';
import { toWritError, WritError } from '../../core/errors.js';
import type { FleetSummary } from '../../core/fleet/answers.js';
import { given } from '../../core/given.js';
import { readAuthorityFile } from '../../platform/net/authorities.js';
import { askHttp } from '../../platform/net/http-request.js';
import { createProxies, type Proxies } from '../../platform/net/proxies.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { takeLease } from '../store/leases.js';
import type { FleetStore } from '../store/open-store.js';
import type { AlarmRow, Tables } from '../store/tables.js';
import { transactOnce } from '../store/transact.js';
import { planAlarms } from './alarm-rules.js';
import { webhookBody } from './webhook-body.js';

export interface WebhookTarget {
  /** https, or http on this machine. Its path may be a secret, so that logs contain only its origin. */
  readonly url: URL;
  /** Path of a bearer token. The file is read at each attempt. */
  readonly tokenFile?: string;
  /** Path of certificate authorities (PEM) that replace those of the system. The file is read at each attempt. */
  readonly caFile?: string;
  /** Undefined: the proxies of the environment. */
  readonly proxies?: Proxies;
}

export interface WebhookOptions {
  readonly target: WebhookTarget;
  /** Address of the fleet's pages, for links. */
  readonly link: string;
  readonly summary: () => Promise<FleetSummary>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly onRequest: (result: 'ok' | 'failed') => void;
}

const checkEveryMs = 5_000;
const leaseMs = 60_000;
const timeoutMs = 10_000;
const maxAnswerBytes = 65_536;
const maxFileBytes = 1_048_576;
/** Alarms of one request, about 100 kB. */
const maxTogether = 100;
const backoff = { firstMs: 5_000, maxMs: 300_000 };

/** Runs until the signal aborts. Logs and retries every error. */
export async function runWebhook({ db, fleetId }: FleetStore, options: WebhookOptions): Promise<void> {
  const { clock, log, signal, summary } = options;
  const lease = heldLease(db, clock);
  const retry = { tries: 0, atMs: Number.NEGATIVE_INFINITY };
  warnAboutFiles(options);
  while (!signal.aborted) {
    try {
      if (await lease.hold()) {
        const untold = await storeAlarms(db, await summary(), clock.nowMs());
        const isTime = untold.length > 0 && clock.monotonicMs() >= retry.atMs;
        if (isTime) await notifyReceiver(untold.slice(0, maxTogether));
      }
    } catch (error) {
      log.error({ err: error }, 'the webhook was not looked after');
    }
    await clock.sleep(checkEveryMs, signal);
  }
  await lease.release();

  async function notifyReceiver(rows: readonly AlarmRow[]): Promise<void> {
    const body = JSON.stringify(webhookBody(rows, fleetId, options.link));
    const failure = await post(body, options).catch(toWritError);
    if (signal.aborted && failure !== undefined) return;
    options.onRequest(failure === undefined ? 'ok' : 'failed');
    if (failure === undefined) {
      retry.tries = 0;
      retry.atMs = Number.NEGATIVE_INFINITY;
      await recordNotified(db, rows);
      const resolved = rows.filter((row) => row.ends_at_ms !== 0).length;
      log.info({ firing: rows.length - resolved, resolved }, 'the webhook was notified');
      return;
    }
    const { code, message, facts } = failure;
    const asked = typeof facts['retryAfterMs'] === 'number' ? facts['retryAfterMs'] : 0;
    const againMs = Math.min(backoff.maxMs, Math.max(asked, computeBackoffMs(retry.tries + 1, backoff)));
    retry.tries += 1;
    retry.atMs = clock.monotonicMs() + againMs;
    log.warn({ code, alarms: rows.length, againMs, to: options.target.url.origin }, message);
  }
}

/** Warns at the start about unreadable files, because the first alarm may be months later. */
function warnAboutFiles({ target, log }: WebhookOptions): void {
  for (const read of [() => tokenOf(target), () => authoritiesOf(target)])
    try {
      read();
    } catch (error) {
      const { code, facts } = toWritError(error);
      log.warn({ code }, `the receiver cannot be notified of any alarm: ${String(facts['reason'])}`);
    }
}

/** A lease that is renewed when half of it is over, and released at the end, so that the next server need not wait. */
function heldLease(db: Kysely<Tables>, clock: Clock) {
  const holder = randomUUID();
  let untilMs = Number.NEGATIVE_INFINITY;
  const take = (forMs: number): Promise<boolean> =>
    takeLease(db, 'webhook', { holder, nowMs: clock.nowMs(), forMs });
  return {
    hold: async (): Promise<boolean> => {
      const nowMs = clock.monotonicMs();
      if (untilMs - nowMs > leaseMs / 2) return true;
      if (!(await take(leaseMs))) return false;
      untilMs = nowMs + leaseMs;
      return true;
    },
    release: async (): Promise<void> => {
      // If the store is unavailable, the lease ends by its time.
      if (untilMs > clock.monotonicMs()) await take(0).catch(() => false);
    },
  };
}

/** Stores changed alarms before they are sent, so that they keep their begin after a crash. @returns the alarms to send */
async function storeAlarms(
  db: Kysely<Tables>,
  summary: FleetSummary,
  nowMs: number,
): Promise<readonly AlarmRow[]> {
  const stored = await db.selectFrom('alarms').selectAll().execute();
  const rows = stored.map((row) => ({
    ...row,
    starts_at_ms: Number(row.starts_at_ms),
    ends_at_ms: Number(row.ends_at_ms),
  }));
  const { written, gone, untold } = planAlarms(rows, summary, nowMs);
  if (written.length + gone.length > 0)
    await transactOnce(db, async (trx) => {
      await remove(trx, [...gone, ...written.map(({ fingerprint }) => fingerprint)]);
      for (const row of written) await trx.insertInto('alarms').values(row).execute();
    });
  return untold;
}

async function recordNotified(db: Kysely<Tables>, rows: readonly AlarmRow[]): Promise<void> {
  const isResolved = (row: AlarmRow): boolean => row.ends_at_ms !== 0;
  await transactOnce(db, async (trx) => {
    await remove(
      trx,
      rows.filter(isResolved).map(({ fingerprint }) => fingerprint),
    );
    for (const { fingerprint } of rows.filter((row) => !isResolved(row)))
      await trx
        .updateTable('alarms')
        .set({ told: 'firing' })
        .where('fingerprint', '=', fingerprint)
        .execute();
  });
}

async function remove(trx: Kysely<Tables>, fingerprints: readonly string[]): Promise<void> {
  for (const fingerprint of fingerprints)
    await trx.deleteFrom('alarms').where('fingerprint', '=', fingerprint).execute();
}

/** @returns the failure; undefined if the receiver accepted the request */
async function post(body: string, { target, clock, signal }: WebhookOptions): Promise<WritError | undefined> {
  const { url, proxies = createProxies() } = target;
  const token = tokenOf(target);
  const headers = {
    'content-type': 'application/json',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const ca = authoritiesOf(target);
  const sent = { url, method: 'POST', headers, body, timeoutMs, maxAnswerBytes, clock, signal, proxies };
  const reply = await askHttp({ ...sent, ...given({ ca }) });
  if (reply.kind === 'failed') return failed(reply.reason);
  if (reply.status >= 200 && reply.status < 300) return undefined;
  return failed(`it answered ${reply.status}`, given({ retryAfterMs: reply.retryAfterMs }));
}

/** @returns undefined if no token is configured. @throws FLEET_WEBHOOK_FAILED if the file is unreadable; then no request is sent */
function tokenOf({ tokenFile }: WebhookTarget): string | undefined {
  if (tokenFile === undefined) return undefined;
  const read = readSmallFile(tokenFile, { maxBytes: maxFileBytes });
  if (read.kind === 'read') return read.bytes.toString('utf8').trim();
  throw failed(`${tokenFile}: ${read.why}`);
}

/** @returns undefined: the authorities of the system. @throws FLEET_WEBHOOK_FAILED if the file is unreadable */
function authoritiesOf({ caFile }: WebhookTarget): string | undefined {
  if (caFile === undefined) return undefined;
  const read = readAuthorityFile(caFile);
  if (read.kind === 'read') return read.pem;
  throw failed(`${caFile}: ${read.why}`);
}

function failed(reason: string, facts: Readonly<Record<string, number>> = {}): WritError {
  return new WritError('FLEET_WEBHOOK_FAILED', `the receiver was not notified: ${reason}`, {
    facts: { reason, ...facts },
  });
}
