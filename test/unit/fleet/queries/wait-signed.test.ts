// A wait where the fleet server reads the repository: only hosts with the signed manifest have the release.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import type { WaitFacts } from '../../../../src/core/fleet/answers.js';
import type { SignedEntry } from '../../../../src/core/fleet/signed-releases.js';
import { judgeWait } from '../../../../src/core/fleet/wait-verdict.js';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { noteAccepting } from '../../../../src/fleet/hosts/sweeps.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { saveView } from '../../../../src/fleet/repositories/repository-views.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { bundleAt, fleetBench, reportOf, send } from '../../../kit/fleet/fleet-bench.js';

const [root, otherRoot] = ['a'.repeat(64), 'b'.repeat(64)];
const [signedManifest, otherManifest] = ['1'.repeat(64), '2'.repeat(64)];
const question = { bundle: 'dns', channel: 'stable', serial: 2 };
const terms = { sharePpm: 1_000_000, withinMs: 900_000, accept: 'confirmed' } as const;

function entry(serial: number): SignedEntry {
  return {
    ...{ bundle: 'dns', channel: 'stable', serial, manifest: signedManifest, manifestBytes: 100 },
    ...{ archive: 'c'.repeat(64), archiveBytes: 1000, revision: '', createdAtMs: 0, role: 'targets' },
    ...{ requires: [], stamps: [], withdrawn: [], seenAtMs: 0 },
  };
}

function outcomeOf(facts: WaitFacts) {
  const reached = { sinceMs: facts.atMs, elapsedMs: 0 };
  return judgeWait(facts, terms, { frozen: facts.of, elapsedMs: 0, reached }).outcome;
}

describe('a wait for a release of a repository that the server follows', () => {
  const directory = tempDir(memory());
  after(() => directory[Symbol.dispose]());

  async function siteOf(name: string) {
    const clock = fakeClock({ mode: 'skip' });
    const bench = await fleetBench(directory.join(name), clock);
    await noteAccepting(bench.store.db, clock.nowMs());
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    const queries = createFleetQueries(bench.store.db, bench.store.fleetId, clock);
    const { token } = await bench.token();
    return {
      clock,
      wait: (sinceMs?: number) =>
        queries.wait({ ...question, ...(sinceMs === undefined ? {} : { sinceMs }) }),
      curve: async () => (await queries.release(question)).curve,
      /** A reading of the repository that begins now. */
      read: (serial: number) => {
        const checkedAtMs = clock.nowMs();
        const times = { checkedAtMs, triedAtMs: checkedAtMs };
        const view = {
          url: 'https://a/',
          ...times,
          roles: [],
          roots: [root],
          entries: [entry(serial)],
          past: [],
        };
        return saveView(bench.store.db, 'a', view);
      },
      host: async (host: string, manifest: string, sha256 = root) => {
        const { active } = bundleAt(2);
        assert.ok(active);
        const bundles = [bundleAt(2, { active: { ...active, manifest } })];
        const report = reportOf(host, { root: { version: 1, sha256 }, bundles });
        await send(ingest, await bench.enrol(token, host), report);
      },
      [Symbol.asyncDispose]: async () => {
        await ingest.close();
        await bench[Symbol.asyncDispose]();
      },
    };
  }

  it('names the hosts with another manifest, whatever their number, and is reached by none of them', async () => {
    await using site = await siteOf('majority');
    await site.read(2);
    for (const host of ['web-1', 'web-2', 'web-3']) await site.host(host, otherManifest);
    const lies = await site.wait();
    assert.deepEqual([lies.of, lies.confirmed, lies.elsewhere, lies.manifest], [3, 0, 3, undefined]);
    assert.deepEqual(
      lies.elsewhereHosts?.map(({ host }) => host),
      ['web-1', 'web-2', 'web-3'],
    );
    assert.equal(outcomeOf(lies), 'ambiguous');
    assert.deepEqual(await site.curve(), [], 'nor do they count on the page of the release');
    await site.host('web-4', signedManifest);
    const { confirmed, elsewhere, manifest } = await site.wait();
    assert.deepEqual([confirmed, elsewhere, manifest], [1, 3, signedManifest]);
  });

  it('ends with no such release once the repository was read and has no such serial', async () => {
    await using site = await siteOf('restored');
    await site.read(1);
    await site.host('web-1', otherManifest);
    await site.clock.advance(1000);
    const first = await site.wait();
    assert.deepEqual([first.confirmed, outcomeOf(first)], [1, 'waiting'], 'perhaps published a moment ago');
    await site.clock.advance(1000);
    await site.read(1);
    const facts = await site.wait(first.atMs);
    assert.deepEqual([facts.confirmed, facts.elsewhere, outcomeOf(facts)], [0, 1, 'absent']);
  });

  it('is reached by hosts of another repository, which the server does not follow', longCase, async () => {
    await using site = await siteOf('unread');
    await site.host('web-1', otherManifest, otherRoot);
    const { atMs } = await site.wait();
    await site.clock.advance(1000);
    await site.read(1);
    assert.equal(outcomeOf(await site.wait(atMs)), 'reached');
  });
});
