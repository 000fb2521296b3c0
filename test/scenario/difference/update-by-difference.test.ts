// An update by a delta: a few hundred bytes on the network, and a tree that is identical to that of the archive.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { longCase } from '../../kit/assert/long-case.js';
import {
  differenceBench,
  filesOf,
  inodesOf,
  noise,
  treeOf,
  warningsOf,
} from '../../kit/delta/difference-bench.js';
import { findDamage } from '../../kit/host/repair-bench.js';
import { testHost } from '../../kit/host/test-host.js';

describe('an update by a delta', () => {
  it('downloads only the delta, reports it, and writes all files as new ones', longCase, async () => {
    using bench = await differenceBench();
    const before = new Set(inodesOf(bench.tree()));
    await bench.publish(2);
    const { result, events } = await bench.test.sync();
    assert.deepEqual([result.outcome, result.warnings], ['activated', []]);
    assert.deepEqual(bench.fetched(), ['delta']);
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 2\n');
    assert.deepEqual(
      inodesOf(bench.tree()).filter((one) => before.has(one)),
      [],
    );
    const text = events.flatMap((one) =>
      one.type === 'step.finished' && one.step === 'fetch' ? one.text : [],
    );
    assert.match(text.join(), /^\d+ B \(access by delta from 1\)$/);
    assert.deepEqual(await findDamage(bench.test.host), []);
    assert.deepEqual(fs.readdirSync(bench.test.host.paths.staging), []);
  });

  it('reports the bytes of the delta as its progress', async () => {
    using bench = await differenceBench();
    await bench.publish(2);
    const { events, progress } = await bench.test.sync();
    const reports = events.filter((one) => one.type === 'step.progress');
    assert.ok(
      reports.every((one) => one.totalBytes < 1000),
      JSON.stringify(reports),
    );
    assert.ok(progress.fetchedBytes() > 0 && progress.fetchedBytes() < 1000);
  });

  it('starts at any base that the release lists, and at no other', longCase, async () => {
    using bench = await differenceBench({ deltas: { bases: 2 } });
    await bench.publish(2);
    await bench.publish(3);
    assert.equal((await bench.test.pull()).outcome, 'activated');
    assert.deepEqual(bench.fetched(), ['delta'], '1 to 3');
    for (const version of [4, 5, 6]) await bench.publish(version);
    assert.equal((await bench.test.pull()).outcome, 'activated');
    assert.deepEqual(bench.fetched(), ['archive'], '3 to 6');
  });

  it('uses the archive when that is smaller', async () => {
    using bench = await differenceBench();
    await bench.publish(2, { 'policy.yaml': 'version: 2\n', other: noise('another', 20) });
    await bench.test.pull();
    await bench.publish(3, { 'policy.yaml': noise('new', 900) });
    bench.fetched();
    assert.equal((await bench.test.pull()).outcome, 'activated');
    assert.deepEqual(bench.fetched(), ['archive']);
  });

  it('is not used by a forced pull', async () => {
    using bench = await differenceBench();
    await bench.publish(2);
    assert.equal((await bench.test.pull({ force: 'yes' })).outcome, 'activated');
    assert.deepEqual(bench.fetched(), ['archive']);
    assert.ok(fs.existsSync(bench.kept('archive.tar.br')));
  });

  it('is chosen for each bundle', async () => {
    using test = testHost({ deltas: {}, bundles: [{ name: 'access' }, { name: 'zones' }] });
    const fetched = (): number =>
      test.repository.takeRequests().filter((one) => one.includes('.delta')).length;
    const zones = { z: noise('z', 900) };
    const turns = [
      { access: filesOf(1), zones, deltas: 0 },
      { access: filesOf(2), zones: { ...zones, y: '' }, deltas: 2 },
    ];
    for (const [index, turn] of turns.entries()) {
      const serial = index + 1;
      await test.publish('access', turn.access, { serial });
      await test.publish('zones', turn.zones, { serial });
      const { result, events } = await test.sync();
      assert.equal(result.outcome, 'activated');
      assert.equal(fetched(), turn.deltas);
      if (serial > 1) assert.match(JSON.stringify(events), /access by delta from 1, zones by delta from 1/);
    }
  });

  it('is rolled back like any other, and the next update starts at the active release', async () => {
    using bench = await differenceBench();
    await bench.update(2);
    const signal = new AbortController().signal;
    const { result } = await rollBack(bench.test.host, { signal, by: 'test', onEvent: () => undefined });
    assert.equal(result.outcome, 'activated');
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 1\n');
    bench.fetched();
    await bench.publish(3);
    const { events } = await bench.test.sync();
    assert.match(JSON.stringify(events), /access by delta from 1/);
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 3\n');
  });
});

/** Changes of a file between releases: moved, grown, shrunk, emptied, deleted, executable, with the content of another file. */
function edited(files: Record<string, string>, seed: number): Record<string, string> {
  const next: Record<string, string> = {};
  for (const [index, [path, text]] of Object.entries(files).entries()) {
    const what =
      Number.parseInt(
        Buffer.from(noise(`${seed} ${path}`, 4))
          .toString('hex')
          .slice(0, 6),
        16,
      ) % 9;
    const at = Math.floor(text.length / 2);
    if (what === 0) next[`moved/${seed}/${index}`] = text;
    else if (what === 1) next[path] = `${text.slice(0, at)}${noise(`${seed}`, 50)}${text.slice(at)}`;
    else if (what === 2) next[path] = text.slice(at);
    else if (what === 3) next[path] = '';
    else if (what === 4 && index > 0) continue;
    else if (what === 5) next[path.startsWith('+') ? path.slice(1) : `+${path}`] = text;
    else if (what === 6) next[path] = `${text.slice(at)}${text.slice(0, at)}`;
    else next[path] = text;
  }
  return { ...next, [`new-${seed}`]: noise(`new ${seed}`, seed * 37) };
}

describe('a tree that a delta built', longCase, () => {
  it('is identical to the tree of the archive in bytes, modes and times', async () => {
    const bundle = { name: 'access', mode: 0o640, ...(process.getuid?.() === 0 ? { group: 12 } : {}) };
    using byDelta = testHost({ deltas: {}, bundles: [bundle] });
    using byArchive = testHost({ bundles: [bundle] });
    let files = filesOf(1);
    let deltas = 0;
    for (let serial = 1; serial <= 12; serial += 1) {
      for (const test of [byDelta, byArchive]) {
        await test.publish('access', files, { serial });
        const result = await test.pull();
        assert.deepEqual([result.outcome, result.warnings], ['activated', []], `release ${serial}`);
      }
      deltas += byDelta.repository.takeRequests().filter((one) => one.includes('.delta')).length;
      const [one, other] = [byDelta, byArchive].map(({ host }) => treeOf(join(host.paths.current, 'access')));
      assert.deepEqual(one, other, `release ${serial}`);
      assert.deepEqual(await findDamage(byDelta.host), []);
      files = edited(files, serial);
    }
    assert.ok(deltas >= 5, `${deltas} of 11`);
  });
});

describe('a release with a valid delta', () => {
  it('is refused when its archive is too large, whatever the size of the delta', async () => {
    using bench = await differenceBench();
    await bench.publish(2);
    const { config } = bench.test.host;
    Object.assign(config, { limits: { ...config.limits, maxArchiveBytes: 1000 } });
    const result = await bench.test.pull();
    assert.equal(result.bundles[0]?.problem?.code, 'ARCHIVE_LIMIT');
    assert.deepEqual([bench.fetched(), warningsOf(result)], [[], ['DELTA_FAILED']]);
  });
});
