// The retained copy of a release that was updated by deltas: a base archive and the deltas since, under separate names. It is
// enough to rebuild the release without a network, also after a collection, and a scan finds damage to it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createCollector } from '../../../src/agent/cycle/collector.js';
import { scrubAfterMismatch } from '../../../src/agent/integrity/scrub-after-mismatch.js';
import { exclusiveAlone } from '../../../src/agent/job/exclusive.js';
import { maxKeptDeltas } from '../../../src/core/release/kept-delta-rules.js';
import { longCase } from '../../kit/assert/long-case.js';
import {
  type DifferenceBench,
  differenceBench,
  treeOf,
  warningsOf,
} from '../../kit/delta/difference-bench.js';
import { flipBit, putFifo } from '../../kit/disk/damage-file.js';
import { codes, findDamage, repair, short } from '../../kit/host/repair-bench.js';

function cutNetwork({ test }: DifferenceBench): void {
  for (const path of [...test.repository.files.keys()]) {
    if (path.startsWith('targets/')) test.repository.files.delete(path);
  }
}

/** @returns the tree without its times, because a rebuilt tree is newer */
const contentOf = (bench: DifferenceBench): string[] =>
  treeOf(bench.tree()).map((line) => line.replace(/ \d{13} /, ' '));

describe('the retained copy of a release that was updated by deltas', () => {
  it('contains the base archive under another name, and the delta', async () => {
    using bench = await differenceBench();
    const archive = fs.statSync(bench.kept('archive.tar.br')).ino;
    await bench.update(2);
    assert.deepEqual(fs.readdirSync(bench.kept()).sort(), [
      'base.tar.br',
      'delta-1',
      'deltas.json',
      'manifest.json',
      'record.json',
      'targets.json',
    ]);
    assert.equal(fs.statSync(bench.kept('base.tar.br')).ino, archive);
    assert.equal(fs.statSync(bench.kept('delta-1')).mode & 0o777, 0o600);
  });

  it('rebuilds the release without a network, and is retained for the rebuilt tree too', async () => {
    using bench = await differenceBench();
    for (const version of [2, 3, 4]) await bench.update(version);
    const before = contentOf(bench);
    cutNetwork(bench);
    for (const harm of [() => flipBit(bench.tree('list.rpz'), 9), () => fs.rmSync(bench.tree('rules/1'))]) {
      harm();
      assert.deepEqual(codes(await repair(bench.test.host, 'no')), ['activated']);
      assert.deepEqual(contentOf(bench), before);
      assert.deepEqual(await findDamage(bench.test.host), []);
      assert.deepEqual(fs.readdirSync(bench.test.host.paths.staging), []);
    }
  });

  it('is sufficient when record and manifest are lost with the tree', async () => {
    using bench = await differenceBench();
    await bench.update(2);
    flipBit(bench.tree('list.rpz'), 9);
    for (const name of ['manifest.json', 'record.json']) fs.rmSync(bench.kept(name));
    cutNetwork(bench);
    assert.deepEqual(codes(await repair(bench.test.host, 'yes')), ['activated']);
    assert.deepEqual(await findDamage(bench.test.host), []);
    assert.ok(fs.existsSync(bench.kept('delta-1')));
  });

  it('does not depend on earlier releases, which may be collected', longCase, async () => {
    using bench = await differenceBench({ config: { keep: { generations: 1, graceMs: 0 } } });
    for (const version of [2, 3, 4, 5, 6]) await bench.update(version);
    bench.test.clock.advance(86_400_000);
    await createCollector().collectWhenDue(bench.test.host);
    const { paths } = bench.test.host;
    assert.ok(fs.readdirSync(join(paths.archives, 'access')).length < 6, 'some are gone');
    fs.rmSync(bench.tree('policy.yaml'));
    cutNetwork(bench);
    assert.deepEqual(codes(await repair(bench.test.host, 'no')), ['activated']);
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 6\n');
  });

  it(`is an archive again after ${maxKeptDeltas} deltas`, longCase, async () => {
    using bench = await differenceBench();
    for (let version = 2; version <= maxKeptDeltas + 2; version += 1) await bench.update(version);
    const fetched = bench.fetched();
    assert.deepEqual([fetched.length, fetched.indexOf('archive')], [maxKeptDeltas + 1, maxKeptDeltas]);
    await bench.update(maxKeptDeltas + 3);
    assert.deepEqual(bench.fetched(), ['delta']);
    assert.ok(fs.existsSync(bench.kept('delta-1')));
  });
});

const harms: Readonly<Record<string, { does: (bench: DifferenceBench) => void; finds: string[] }>> = {
  'a bit of the archive': {
    does: ({ kept }) => flipBit(kept('base.tar.br'), 9),
    finds: ['archive changed base.tar.br'],
  },
  'no archive': {
    does: ({ kept }) => fs.rmSync(kept('base.tar.br')),
    finds: ['archive missing base.tar.br'],
  },
  'a bit of a delta': { does: ({ kept }) => flipBit(kept('delta-2'), 9), finds: ['archive changed delta-2'] },
  'half a delta': {
    does: ({ kept }) => fs.truncateSync(kept('delta-1'), 9),
    finds: ['archive changed delta-1'],
  },
  'a FIFO for a delta': { does: ({ kept }) => putFifo(kept('delta-1')), finds: ['archive type delta-1'] },
  'no list': { does: ({ kept }) => fs.rmSync(kept('deltas.json')), finds: ['archive missing .'] },
  'half a list': {
    does: ({ kept }) => fs.truncateSync(kept('deltas.json'), 40),
    finds: ['archive changed .'],
  },
  'a FIFO for the list': { does: ({ kept }) => putFifo(kept('deltas.json')), finds: ['archive changed .'] },
  'a list that ends before the release': {
    does: ({ kept }) => {
      const list = JSON.parse(fs.readFileSync(kept('deltas.json'), 'utf8'));
      fs.writeFileSync(kept('deltas.json'), JSON.stringify({ ...list, deltas: list.deltas.slice(0, 1) }));
    },
    finds: ['archive changed .'],
  },
};

describe('damage to the retained copy of a release that was updated by deltas', () => {
  for (const [name, { does, finds }] of Object.entries(harms)) {
    it(`is found, and repaired by the archive: ${name}`, async () => {
      using bench = await differenceBench();
      for (const version of [2, 3]) await bench.update(version);
      does(bench);
      assert.deepEqual((await findDamage(bench.test.host)).map(short), finds);
      const before = bench.tree();
      assert.deepEqual(codes(await repair(bench.test.host)), ['unchanged']);
      assert.equal(bench.tree(), before, 'an intact tree stays');
      assert.deepEqual(await findDamage(bench.test.host), []);
      assert.ok(fs.existsSync(bench.kept('archive.tar.br')));
    });

    it(`leads to no older release when a download repairs the tree: ${name}`, async () => {
      using bench = await differenceBench();
      for (const version of [2, 3]) await bench.update(version);
      does(bench);
      flipBit(bench.tree('list.rpz'), 9);
      assert.deepEqual(codes(await repair(bench.test.host)), ['activated']);
      assert.equal(bench.test.read('access/policy.yaml'), 'version: 3\n');
      assert.deepEqual(await findDamage(bench.test.host), []);
    });
  }

  it('does not occur in the retained copy of the base release', async () => {
    using bench = await differenceBench();
    const archive = bench.kept('archive.tar.br');
    const bytes = fs.readFileSync(archive);
    await bench.update(2);
    assert.deepEqual(fs.readFileSync(archive), bytes);
  });

  it('leads to an older release when nothing can be downloaded', async () => {
    using bench = await differenceBench();
    for (const version of [2, 3]) await bench.update(version);
    flipBit(bench.kept('delta-2'), 9);
    flipBit(bench.tree('list.rpz'), 9);
    cutNetwork(bench);
    assert.deepEqual(codes(await repair(bench.test.host)), ['degraded', 'REPAIRED_BY_PREVIOUS']);
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 2\n');
  });

  it('makes the next update use its archive, because the base is damaged', async () => {
    using bench = await differenceBench();
    await bench.update(2);
    fs.rmSync(bench.kept('delta-1'));
    bench.fetched();
    await bench.update(3);
    assert.deepEqual(bench.fetched(), ['archive']);
  });
});

describe('a base that did not match a delta', () => {
  const scanAfter = (bench: DifferenceBench, result: Parameters<typeof scrubAfterMismatch>[0]) =>
    scrubAfterMismatch(result, {
      host: () => bench.test.host,
      exclusive: exclusiveAlone,
      signal: new AbortController().signal,
    });

  it('is scanned and repaired after the update, because it is the backup of a rollback', async () => {
    using bench = await differenceBench();
    flipBit(bench.tree('rules/3'), 9);
    await bench.publish(2);
    const result = await bench.test.pull();
    assert.deepEqual(warningsOf(result), ['DELTA_MISMATCH']);
    assert.equal(bench.test.host.ledger.read().previous, 1);
    await scanAfter(bench, result);
    const { previous } = bench.test.host.ledger.read();
    assert.equal(previous, 3, 'rebuilt');
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 2\n');
  });

  it('is repaired when it is still active, because the download of the archive failed', async () => {
    using bench = await differenceBench();
    flipBit(bench.tree('rules/3'), 9);
    await bench.publish(2);
    for (const path of [...bench.test.repository.files.keys()]) {
      if (path.endsWith('.tar.br')) bench.test.repository.files.delete(path);
    }
    const result = await bench.test.pull();
    assert.deepEqual([result.outcome, warningsOf(result)], ['failed', ['DELTA_MISMATCH']]);
    await scanAfter(bench, result);
    assert.deepEqual(await findDamage(bench.test.host), []);
    assert.equal(bench.test.read('access/policy.yaml'), 'version: 1\n');
  });

  it('is scanned only after DELTA_MISMATCH', async () => {
    using bench = await differenceBench();
    flipBit(bench.tree('rules/3'), 9);
    await scanAfter(bench, { warnings: [{ code: 'DELTA_FAILED', message: '', hint: '', facts: {} }] });
    assert.deepEqual((await findDamage(bench.test.host)).map(short), ['tree changed rules/3']);
  });
});
