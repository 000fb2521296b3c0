// Tests of each kind of store: reports without a change.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KyselyPlugin } from 'kysely';
import { commitReports } from '../../../../src/fleet/hosts/commit-reports.js';
import { storedCounters } from '../../../../src/fleet/hosts/counter-changes.js';
import { SeenHosts } from '../../../../src/fleet/hosts/seen-hosts.js';
import { RowWriter } from '../../../../src/fleet/store/write-rows.js';
import { type NewLocation, reportOf, send } from '../fleet-bench.js';
import { accepted, ingestOf, scenesAt } from './ingest-scene.js';

/** Registers the cases for one kind of store. */
export function keepaliveCases(newLocation: NewLocation): void {
  const within = scenesAt(newLocation);

  describe('a keepalive', () => {
    it('changes no number, is seen soon, and holds against replays before it is written', () =>
      within(async ({ bench, ingest, host, row }) => {
        await send(ingest, host, reportOf('web-1'));
        const before = await row();
        assert.deepEqual(
          await send(ingest, host, reportOf('web-1', { atMs: 2 }), { counter: 50 }),
          accepted(),
        );
        const replay = await send(ingest, host, reportOf('web-1', { atMs: 3 }), { counter: 50 });
        assert.ok(replay.kind === 'challenge' && replay.challenge.counter === 50, JSON.stringify(replay));
        await ingest.close();
        const after = await row();
        assert.deepEqual([after.counter, after.last_seen_ms > before.last_seen_ms], [50, true]);
        const second = await send(ingestOf(bench), host, reportOf('web-1'), { counter: 51 });
        assert.deepEqual(second, accepted());
      }));

    it('that is written while the row of its host is read holds against a replay all the same', () =>
      within(async ({ bench, host, row }) => {
        const { db } = bench.store;
        const [writer, seen] = [new RowWriter(), new SeenHosts()];
        // After each read statement the keepalive is written, before the ingest uses the row.
        const writesSeen: KyselyPlugin = {
          transformQuery: ({ node }) => node,
          transformResult: async ({ result }) => {
            await seen.write(db, writer);
            return result;
          },
        };
        const counter = 50;
        const { body_digest, every_ms } = await row();
        seen.note({ key_id: host.keyId, counter, body_digest, last_seen_ms: 1, every_ms, skew_ms: 0 });
        const context = { db: db.withPlugin(writesSeen), writer, seen, factor: 1 };
        const signed = { keyId: host.keyId, counter, createdAtMs: 0, bodyDigest: 'f'.repeat(64) };
        const taken = { signed, report: reportOf('web-1'), receivedAtMs: 1 };
        const [verdict] = await commitReports(context, [taken]);
        assert.ok(verdict?.kind === 'challenge' && verdict.challenge.counter === 50, JSON.stringify(verdict));
        assert.deepEqual([(await row()).counter, seen.size], [50, 0]);
      }));

    it('is none when it has a new outcome: the outcome is stored', () =>
      within(async ({ bench, ingest, host }) => {
        const outcome = { n: 7, trigger: 'pull', outcome: 'failed', atMs: 1, bundles: [] } as const;
        await send(ingest, host, reportOf('web-1'));
        assert.deepEqual(await send(ingest, host, reportOf('web-1', { outcomes: [outcome] })), accepted(7));
        const stored = await bench.store.db.selectFrom('outcomes').select('n').execute();
        assert.deepEqual(stored, [{ n: 7 }]);
      }));

    it('never lowers the counter of its host when it is written after a newer report', () =>
      within(async ({ bench, ingest, host, row }) => {
        const { db } = bench.store;
        const seen = new SeenHosts();
        const { body_digest, every_ms } = await row();
        seen.note({ key_id: host.keyId, counter: 50, body_digest, last_seen_ms: 1, every_ms, skew_ms: 0 });
        await send(ingest, host, reportOf('web-1', { health: 'critical' }), { counter: 90 });
        const newer = await row();
        await seen.write(db, new RowWriter());
        assert.deepEqual([(await row()).counter, await row()], [90, newer]);
      }));

    it('that is repeated at another server before the first one wrote it is accepted without a change', () =>
      within(async ({ bench, ingest, host, row }) => {
        const other = ingestOf(bench);
        await send(ingest, host, reportOf('web-1'), { counter: 49 });
        const numbers = await storedCounters(bench.store.db);
        const keepalive = reportOf('web-1', { atMs: 2 });
        assert.deepEqual(await send(ingest, host, keepalive, { counter: 50 }), accepted());
        assert.deepEqual(await send(other, host, keepalive, { counter: 50 }), accepted());
        const changed = reportOf('web-1', { health: 'critical' });
        assert.deepEqual(await send(other, host, changed, { counter: 51 }), accepted());
        const late = await send(ingest, host, keepalive, { counter: 50 });
        assert.ok(late.kind === 'challenge' && late.challenge.counter === 51);
        await Promise.all([ingest.close(), other.close()]);
        const { counter, health } = await row();
        assert.deepEqual([counter, health], [51, 'critical']);
        assert.deepEqual(await storedCounters(bench.store.db), numbers);
      }));
  });
}
