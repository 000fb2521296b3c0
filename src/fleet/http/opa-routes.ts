// Status reports of plain OPAs, in a namespace of their own: they are not signed, so they are shown beside hosts with a mark, and
// counted nowhere. The token of an OPA bounds the number of OPAs.
import type { FastifyRequest } from 'fastify';
import type { Kysely } from 'kysely';
import { WritError } from '../../core/errors.js';
import type { OpaBundle } from '../../core/fleet/answers.js';
import { isHostKey, keyLike } from '../../core/fleet/host-names.js';
import { hostNamePattern, plainPattern } from '../../core/fleet/report-schema.js';
import { given } from '../../core/given.js';
import { tokenShareBytes } from '../bodies/body-budget.js';
import type { BodyTerms } from '../bodies/body-gate.js';
import { retiredError } from '../hosts/change-host.js';
import type { HostRow, Tables } from '../store/tables.js';
import { transact } from '../store/transact.js';
import { checkToken, tokenRefused } from '../tokens/tokens.js';
import { readBearer } from './callers.js';
import type { RefusalBound } from './refusal-bound.js';
import { type Route, type RouteRequest, textSchema } from './routes.js';

const maxOpasOfToken = 1000;
const maxBundles = 100;
const maxStatusBytes = 262_144;
const maxMessageChars = 500;
/** OPA reports after a change, and at least once in each of its polling intervals. */
const everyMs = 300_000;

interface OpaBundleStatus {
  readonly active_revision?: string;
  readonly code?: string;
  readonly message?: string;
}

interface OpaStatus {
  readonly labels: { readonly id: string; readonly version?: string };
  readonly bundles?: Readonly<Record<string, OpaBundleStatus>>;
}

const bundleSchema = {
  type: 'object',
  properties: {
    active_revision: { type: 'string', maxLength: 255 },
    code: { type: 'string', maxLength: 255 },
    message: { type: 'string' },
  },
};
const pattern = plainPattern;
/** Newer versions of OPA add members: unknown members are ignored. */
const statusSchema = {
  type: 'object',
  required: ['labels'],
  properties: {
    labels: {
      type: 'object',
      required: ['id'],
      properties: {
        id: { ...textSchema(200), pattern: hostNamePattern },
        version: { type: 'string', maxLength: 64, pattern },
      },
    },
    bundles: { type: 'object', maxProperties: maxBundles, additionalProperties: bundleSchema },
  },
};

/**
 * @returns the routes for the status reports of OPA, without and with a partition. A report without a valid OPA token
 * is refused before its body is read.
 */
export function opaRoutes(db: Kysely<Tables>, bound: RefusalBound, nowMs: () => number): readonly Route[] {
  const tokens = new WeakMap<FastifyRequest, string>();
  const admit = async (request: FastifyRequest): Promise<BodyTerms> => {
    const bearer = readBearer(request.headers);
    if (bearer === undefined) throw tokenRefused('missing', 'opa');
    const { id } = await bound.guard({ address: request.ip, credential: bearer }, () =>
      checkToken(db, bearer, 'opa', nowMs()),
    );
    tokens.set(request, id);
    return {
      account: { kind: 'credential', id: `token ${id}`, maxBytes: tokenShareBytes },
      maxBytes: maxStatusBytes,
    };
  };
  const take = async ({ request }: RouteRequest): Promise<object> => {
    const id = tokens.get(request) ?? '';
    await transact(db, (trx) => storeStatus(trx, id, request.body as OpaStatus, nowMs()));
    return {};
  };
  return ['/v1/opa/status', '/v1/opa/status/:partition'].map((url) => ({
    method: 'POST',
    url,
    summary: "OPA's own status report",
    access: 'opa',
    body: statusSchema,
    maxBodyBytes: maxStatusBytes,
    admit,
    handle: take,
  }));
}

async function storeStatus(
  trx: Kysely<Tables>,
  token: string,
  { labels, bundles = {} }: OpaStatus,
  nowMs: number,
): Promise<void> {
  if (isHostKey(labels.id))
    throw new WritError('USAGE', `the id of an OPA must not have the form of ${keyLike}`);
  const keyId = `opa/${token}/${labels.id}`;
  const known = Object.entries(bundles).map(([name, status]) => opaBundleOf(name, status));
  const health = known.some(({ code }) => code !== undefined) ? 'warning' : 'ok';
  const seen = {
    last_seen_ms: nowMs,
    version: labels.version ?? '',
    health,
    report: JSON.stringify({ opa: known }),
  };
  const updated = await trx
    .updateTable('hosts')
    .set(seen)
    .where('key_id', '=', keyId)
    .where('state', '=', 'accepted')
    .executeTakeFirst();
  if (updated.numUpdatedRows === 1n) return;
  const kept = await trx
    .selectFrom('hosts')
    .select(['kind', 'state'])
    .where('key_id', '=', keyId)
    .executeTakeFirst();
  if (kept?.state === 'retired') throw retiredError(kept);
  const { opas } = await trx
    .selectFrom('hosts')
    .select((of) => of.fn.countAll<number>().as('opas'))
    .where('token_id', '=', token)
    .where('kind', '=', 'opa')
    .executeTakeFirstOrThrow();
  if (Number(opas) >= maxOpasOfToken)
    throw new WritError('FLEET_ENROL_FULL', `${maxOpasOfToken} OPAs report with this token`);
  await trx
    .insertInto('hosts')
    .values({ ...newRow(keyId, token, labels.id, nowMs), ...seen })
    // Two reports at the same time: the existing row stays.
    .onConflict((of) => of.column('key_id').doNothing())
    .execute();
}

/** OPA sends an empty code and an empty message without an error. */
function opaBundleOf(name: string, { active_revision, code, message }: OpaBundleStatus): OpaBundle {
  return {
    name: name.slice(0, 255),
    ...given({
      revision: active_revision || undefined,
      code: code || undefined,
      message: message?.slice(0, maxMessageChars) || undefined,
    }),
  };
}

function newRow(keyId: string, token: string, host: string, nowMs: number): HostRow {
  return {
    ...{ key_id: keyId, public_key: '', kind: 'opa', state: 'accepted', host, install_id: '', boot_id: '' },
    ...{ token_id: token, ephemeral: 0, enrolled_at_ms: nowMs, counter: 0, body_digest: '', nonce: '' },
    ...{ last_seen_ms: nowMs, every_ms: everyMs, skew_ms: 0, agent: 'run', health: 'ok', version: '' },
    ...{ root_version: 0, root_digest: '', cloned: 0, blocked: 0, slot: 0, last_outcome: 0, report: '' },
    ...{ state_digest: '', revision: 0, past_ids: '', id_returns: 0, answers: 0 },
  };
}
