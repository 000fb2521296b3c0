// Routes for the role `operate`: tokens, and the approval and retirement of hosts. Each change is in the audit with its caller.
import type { Kysely } from 'kysely';
import { fleetBounds } from '../../core/fleet/report.js';
import type { NewToken } from '../../core/fleet/token-answers.js';
import { given } from '../../core/given.js';
import { approveHost, retireHost, retireHostsOf } from '../hosts/change-host.js';
import { findHost } from '../queries/host-pages.js';
import type { Tables } from '../store/tables.js';
import { newTokenSchema } from '../tokens/new-token.js';
import { shownToken } from '../tokens/shown-token.js';
import { createToken, listTokens, revokeToken } from '../tokens/tokens.js';
import { object, type Route, type RouteRequest, textSchema } from './routes.js';

/**
 * @returns the routes that list, create and revoke tokens, and approve or retire a host. Handlers throw the errors of
 * the changes.
 */
export function changeRoutes(db: Kysely<Tables>, nowMs: () => number): readonly Route[] {
  const change = ({ caller }: RouteRequest) => ({ who: caller.who, nowMs: nowMs() });
  const ofHost = (verb: 'approve' | 'retire', act: typeof approveHost): Route => ({
    method: 'POST',
    url: `/v1/hosts/:key/${verb}`,
    summary: verb === 'approve' ? 'Approve a waiting host' : 'Refuse this key from now on',
    access: 'operate',
    params: object({ key: textSchema(300) }, ['key']),
    type: `fleet.${verb}`,
    handle: async (asked) => {
      const { key_id: key, host } = await findHost(db, (asked.request.params as { key: string }).key);
      await act(db, key, change(asked));
      return { schema: 1, type: `fleet.${verb}`, key, host };
    },
  });
  return [
    {
      method: 'GET',
      url: '/v1/tokens',
      summary: 'Tokens without their secrets, newest first',
      access: 'operate',
      type: 'fleet.tokens',
      handle: async () => ({
        schema: 1,
        type: 'fleet.tokens',
        tokens: (await listTokens(db)).map((one) => shownToken(one, nowMs())),
      }),
    },
    {
      method: 'POST',
      url: '/v1/tokens',
      summary: 'A new token: the answer is its only copy',
      access: 'operate',
      body: newTokenSchema,
      // 64 labels of the longest names and values.
      maxBodyBytes: fleetBounds.maxReportBytes,
      type: 'fleet.token',
      handle: async (asked) => {
        const made = await createToken(db, asked.request.body as NewToken, change(asked));
        return { schema: 1, type: 'fleet.token', ...given(made) };
      },
    },
    {
      method: 'DELETE',
      url: '/v1/tokens/:id',
      summary: 'Refuse this token, and the sessions of it, from now on',
      access: 'operate',
      params: object({ id: textSchema(64) }, ['id']),
      type: 'fleet.token',
      handle: async (asked) => {
        const { id } = asked.request.params as { id: string };
        await revokeToken(db, id, change(asked));
        return { schema: 1, type: 'fleet.token', id };
      },
    },
    {
      method: 'POST',
      url: '/v1/tokens/:id/retire-hosts',
      summary:
        'Refuse the keys of hosts that this token enrolled, a bounded number: `afterKey` is given while there may be more',
      access: 'operate',
      params: object({ id: textSchema(64) }, ['id']),
      body: object({ afterKey: textSchema(300) }),
      type: 'fleet.retired',
      handle: async (asked) => {
        const { id } = asked.request.params as { id: string };
        const { afterKey = '' } = asked.request.body as { afterKey?: string };
        const retired = await retireHostsOf(db, id, { ...change(asked), afterKey });
        return { schema: 1, type: 'fleet.retired', id, ...retired };
      },
    },
    ofHost('approve', approveHost),
    ofHost('retire', retireHost),
  ];
}
