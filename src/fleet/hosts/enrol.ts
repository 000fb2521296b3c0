// Enrols a host in one transaction: takes one use of the token, writes the host's row and labels, and retires the keys that it
// replaces. enrol-rules.ts decides. The caller has verified that the key in the request signed it.
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { EnrolAnswer, EnrolRequest } from '../../core/fleet/report.js';
import { addAudit } from '../store/audit.js';
import { lockUntilCommit } from '../store/leases.js';
import type { FleetStore } from '../store/open-store.js';
import type { FleetRow, HostRow, Tables } from '../store/tables.js';
import { transact } from '../store/transact.js';
import { RowWriter } from '../store/write-rows.js';
import { findToken, type ListedToken, takeUse, tokenRefused } from '../tokens/tokens.js';
import { retireIn } from './change-host.js';
import { CounterChanges, slotOf, writeCounters } from './counter-changes.js';
import { type EnrolVerdict, judgeEnrolment } from './enrol-rules.js';
import { labelRows } from './report-rows.js';
import { hostKeyIdOf } from './signed-request.js';

export interface Enrolment {
  readonly request: EnrolRequest;
  /** Counter of the signed request. The first report must have a higher one. */
  readonly counter: number;
  readonly nowMs: number;
}

/** Report interval that is assumed until the first report states it, in milliseconds. */
const firstEveryMs = 300_000;

/**
 * Enrols a host, or returns the state of a key that is enrolled already.
 *
 * @throws FLEET_TOKEN_REFUSED, FLEET_HOST_NOT_COVERED, FLEET_KEY_RETIRED, FLEET_ENROL_FULL, FLEET_REPORT_INVALID; a database error
 */
export async function enrolHost(store: FleetStore, enrolment: Enrolment): Promise<EnrolAnswer> {
  const keyId = hostKeyIdOf(Buffer.from(enrolment.request.publicKey, 'base64'));
  const state = await transact(store.db, (trx) => enrolIn(trx, keyId, enrolment));
  return { fleet: store.fleetId, keyId, state };
}

async function enrolIn(
  trx: Kysely<Tables>,
  keyId: string,
  enrolment: Enrolment,
): Promise<'accepted' | 'waiting'> {
  // Serialize enrolments, because two concurrent requests for one name would both find it free.
  await lockUntilCommit(trx, 'enrol');
  const { request, nowMs } = enrolment;
  const token = await findToken(trx, request.token, 'hosts');
  const verdict = await judge(trx, keyId, enrolment, token);
  if (verdict.kind === 'refused') throw new WritError(verdict.code, verdict.reason);
  if (verdict.kind === 'known') return verdict.state;
  if (token === undefined || !(await takeUse(trx, token.id))) throw tokenRefused('used-up', 'hosts');
  const change = { who: `token ${token.id}`, nowMs };
  const counters = new CounterChanges();
  for (const replaced of verdict.kind === 'accepted' ? verdict.retires : [])
    await retireIn(trx, replaced, { ...change, what: 'host.replace' }, counters);
  const host = hostRow(keyId, enrolment, token.id, verdict.kind);
  await trx.insertInto('hosts').values(host).execute();
  counters.hosts.add(host, 1);
  const forced = JSON.parse(token.labels) as Record<string, string>;
  const labels = labelRows(keyId, request.labels, forced);
  if (labels.length > 0) await trx.insertInto('host_labels').values(labels).execute();
  const what = verdict.kind === 'accepted' ? 'host.enrol' : 'host.wait';
  await addAudit(trx, { atMs: nowMs, who: change.who, what, subject: keyId, detail: request.host });
  await writeCounters(trx, new RowWriter(), counters);
  return verdict.kind;
}

async function judge(
  trx: Kysely<Tables>,
  keyId: string,
  { request, nowMs }: Enrolment,
  token: ListedToken | undefined,
): Promise<EnrolVerdict> {
  const fleet: FleetRow = await trx.selectFrom('fleet').selectAll().executeTakeFirstOrThrow();
  const own = await trx.selectFrom('hosts').select('state').where('key_id', '=', keyId).executeTakeFirst();
  const sameName = await trx
    .selectFrom('hosts')
    .select(['key_id', 'state', 'last_seen_ms', 'every_ms'])
    .where('host', '=', request.host)
    .where('kind', '=', 'writ')
    .where('state', '=', 'accepted')
    .limit(1000)
    .execute();
  const { waiting } = await trx
    .selectFrom('hosts')
    .select((eb) => eb.fn.countAll<number>().as('waiting'))
    .where('state', '=', 'waiting')
    .where('token_id', '=', token?.id ?? '')
    .executeTakeFirstOrThrow();
  const { host, replaces } = request;
  return judgeEnrolment({ token, own, sameName, waiting, host, replaces: replaces === true, fleet, nowMs });
}

function hostRow(
  keyId: string,
  { request, counter, nowMs }: Enrolment,
  tokenId: string,
  state: 'accepted' | 'waiting',
): HostRow {
  return {
    ...{ key_id: keyId, public_key: request.publicKey, kind: 'writ', state, host: request.host },
    ...{
      install_id: request.installId,
      boot_id: '',
      token_id: tokenId,
      ephemeral: request.ephemeral ? 1 : 0,
    },
    ...{ enrolled_at_ms: nowMs, counter, body_digest: '', nonce: '', last_seen_ms: nowMs },
    ...{ every_ms: firstEveryMs, skew_ms: 0, agent: '', health: '', version: '', root_version: 0 },
    ...{
      root_digest: '',
      cloned: 0,
      blocked: 0,
      slot: slotOf(keyId),
      last_outcome: 0,
      report: '',
      state_digest: '',
    },
    ...{ revision: 0, past_ids: '', id_returns: 0, answers: 0 },
  };
}
