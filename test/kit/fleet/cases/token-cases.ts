// Tests of each kind of store: tokens.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { beginSession } from '../../../../src/fleet/http/callers.js';
import { createRefusalBound } from '../../../../src/fleet/http/refusal-bound.js';
import {
  checkToken,
  listTokens,
  revokeToken,
  takeUse,
  tokenDigest,
} from '../../../../src/fleet/tokens/tokens.js';
import { rejectsCode } from '../../assert/assert-code.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { fleetBench, type NewLocation } from '../fleet-bench.js';

/** Registers the cases for one kind of store. */
export function tokenCases(newLocation: NewLocation): void {
  describe('tokens', () => {
    it('keep their newest hundred sessions, so that endless sign-ins fill no disk', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { db } = bench.store;
      const [often, other] = [await bench.token({ kind: 'people' }), await bench.token({ kind: 'people' })];
      const asking = { headers: {}, ip: '192.0.2.1' };
      const signIn = (token: string): Promise<string> =>
        beginSession(
          { db, bound: createRefusalBound(clock), nowMs: clock.nowMs(), secure: false },
          token,
          asking,
        );
      await signIn(other.token);
      let last = '';
      for (let times = 0; times < 103; times++) {
        await clock.advance(1);
        last = await signIn(often.token);
      }
      const kept = await db.selectFrom('sessions').selectAll().execute();
      const of = (id: string) => kept.filter((one) => one.token_id === id);
      assert.deepEqual([of(often.id).length, of(other.id).length], [100, 1]);
      assert.ok(kept.some(({ digest }) => digest === tokenDigest(last)));
    });

    it('are not made beyond what a token may be, and nothing is stored of it', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      await rejectsCode('USAGE', bench.token({ hosts: '' }));
      await rejectsCode('USAGE', bench.token({ note: 'two\u0000' }));
      await rejectsCode('USAGE', bench.token({ kind: 'people', uses: 1 }));
      assert.deepEqual(await listTokens(bench.store.db), []);
      assert.deepEqual(await bench.store.db.selectFrom('audit').selectAll().execute(), []);
    });

    it('are shown once, stored as a digest, and valid for their kind only', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { id, token } = await bench.token({ kind: 'people', role: 'detail', note: 'ci' });
      assert.match(token, /^writ_people_[A-Za-z0-9_-]{43}$/);
      const [listed] = await listTokens(bench.store.db);
      assert.deepEqual(
        [listed?.id, listed?.role, listed?.note, listed && 'digest' in listed],
        [id, 'detail', 'ci', false],
      );
      const rows = await bench.store.db.selectFrom('tokens').selectAll().execute();
      assert.equal(JSON.stringify(rows).includes(token.slice(-20)), false);
      const found = await checkToken(bench.store.db, token, 'people', clock.nowMs());
      assert.deepEqual([found.id, 'digest' in found], [id, false]);
      for (const [text, kind] of [
        [token, 'hosts'],
        [`${token}x`, 'people'],
      ] as const) {
        const error = await rejectsCode(
          'FLEET_TOKEN_REFUSED',
          checkToken(bench.store.db, text, kind, clock.nowMs()),
        );
        assert.equal(error.facts.actual, 'unknown');
      }
    });

    it('end at their time, by a revocation, and after their uses', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { db } = bench.store;
      const refusal = async (token: string): Promise<unknown> => {
        const error = await rejectsCode('FLEET_TOKEN_REFUSED', checkToken(db, token, 'hosts', clock.nowMs()));
        return error.facts.actual;
      };
      const short = await bench.token({ lifetimeMs: 1000 });
      await clock.advance(999);
      await checkToken(db, short.token, 'hosts', clock.nowMs());
      await clock.advance(1);
      assert.equal(await refusal(short.token), 'expired');
      const revoked = await bench.token();
      await db
        .insertInto('sessions')
        .values({ digest: 'd', token_id: revoked.id, expires_at_ms: 9e15 })
        .execute();
      const change = { who: 'anna', nowMs: clock.nowMs() };
      await revokeToken(db, revoked.id, change);
      await revokeToken(db, revoked.id, change);
      assert.equal(await refusal(revoked.token), 'revoked');
      assert.deepEqual(await db.selectFrom('sessions').selectAll().execute(), []);
      await rejectsCode('FLEET_TOKEN_UNKNOWN', revokeToken(db, 'nobody', change));
      const twice = await bench.token({ uses: 2 });
      const taken = await Promise.all([1, 2, 3, 4].map(() => takeUse(db, twice.id)));
      assert.equal(taken.filter(Boolean).length, 2);
      assert.equal(await refusal(twice.token), 'used-up');
      assert.equal(await takeUse(db, revoked.id), false);
    });

    it('leave a row of audit with each change, the newest with the highest number', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { id } = await bench.token({ hosts: 'web-*' });
      await clock.advance(1);
      await revokeToken(bench.store.db, id, { who: 'anna', nowMs: clock.nowMs() });
      const rows = await bench.store.db.selectFrom('audit').selectAll().orderBy('id', 'desc').execute();
      assert.deepEqual(
        rows.map(({ who, what, subject, detail }) => [who, what, subject, detail]),
        [
          ['anna', 'token.revoke', id, ''],
          ['test', 'token.create', id, 'hosts web-*'],
        ],
      );
    });
  });
}
