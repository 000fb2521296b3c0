// A damaged trust store is repaired from its history, or refused with a fix. Links that lead out of it are never followed.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { OperationObserver } from '../../../../src/platform/disk/durable-fs.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { type Host, host, rotatedHost } from '../../../kit/trust/stored-trust.js';

describe('trust store: repair', () => {
  for (const [role, requests] of [
    ['timestamp', ['GET metadata/timestamp.json']],
    ['snapshot', ['GET metadata/timestamp.json', 'GET metadata/1.snapshot.json']],
    ['targets', ['GET metadata/timestamp.json', 'GET metadata/1.targets.json']],
  ] as const) {
    it(`fetches a truncated ${role} again, and nothing else`, async () => {
      using it = await rotatedHost(0);
      it.damage(`${role}.json`);
      it.repository.takeRequests();
      await it.boot().refresh();
      assert.deepEqual(it.repository.takeRequests(), ['GET metadata/2.root.json', ...requests]);
      const name = role === 'timestamp' ? 'timestamp.json' : `1.${role}.json`;
      assert.deepEqual(it.read(`${role}.json`), it.repository.file(name));
    });
  }

  it('rebuilds a truncated or missing root.json from the history', async () => {
    for (const harm of [
      (it: Host) => it.damage('root.json'),
      (it: Host) => rmSync(join(it.trust, 'root.json')),
      (it: Host) => writeFileSync(join(it.trust, 'root.json'), it.repository.file('timestamp.json')),
    ]) {
      using it = await rotatedHost(3);
      harm(it);
      it.repository.takeRequests();
      await it.boot().refresh();
      assert.equal(it.repository.takeRequests()[0], 'GET metadata/5.root.json');
      assert.deepEqual(it.read('root.json'), it.repository.file('4.root.json'));
    }
  });

  it('rebuilds as far as the history is valid, and fetches the rest', async () => {
    using it = await rotatedHost(3);
    it.damage('root.json');
    it.damage('roots/3.root.json');
    it.repository.takeRequests();
    await it.boot().refresh();
    assert.deepEqual(it.repository.takeRequests().slice(0, 3), [
      'GET metadata/3.root.json',
      'GET metadata/4.root.json',
      'GET metadata/5.root.json',
    ]);
    assert.deepEqual(it.read('roots/3.root.json'), it.repository.file('3.root.json'));
  });

  it('continues after a power loss between any two steps of any write', async () => {
    using it = host();
    it.repository.rotate('root');
    let fatal = 1;
    for (; ; fatal += 1) {
      rmSync(it.trust, { recursive: true, force: true });
      let step = 0;
      const cut: OperationObserver = {
        before: () => {
          step += 1;
          if (step >= fatal) throw Object.assign(new Error('power'), { code: 'EIO' });
        },
      };
      const first = await it
        .boot(cut)
        .refresh()
        .catch((error: unknown) => error);
      if (!(first instanceof Error)) break;
      const result = await it.boot().refresh();
      assert.equal(result.roles.root.version, 2, `cut before step ${fatal}`);
      assert.deepEqual(it.read('targets.json'), it.repository.file('1.targets.json'));
    }
    assert.ok(fatal > 20, `${fatal - 1} cuts`);
  });

  it('throws the error of the disk', async () => {
    using it = host();
    const full: OperationObserver = {
      before: ({ op }) => {
        if (op === 'trust.timestamp:write') throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      },
    };
    await rejectsCode('DISK_FULL', it.boot(full).refresh());
    await it.boot().refresh();
  });

  it('reports an error when neither root.json nor the history can be used', async () => {
    using it = await rotatedHost(0);
    it.damage('root.json');
    it.damage('roots/1.root.json');
    await rejectsCode('TRUST_STORE_DAMAGED', it.boot().refresh());
  });

  it('denies a store that cannot be read', {
    skip: process.getuid?.() === 0 ? 'root may do all of this' : false,
  }, async () => {
    using it = await rotatedHost(0);
    chmodSync(join(it.trust, 'timestamp.json'), 0);
    await rejectsCode('DISK_DENIED', it.boot().refresh());
  });
});

describe('trust store: links', () => {
  const places = ['root.json', 'timestamp.json', 'roots/1.root.json', 'roots', '.'];

  for (const place of places) {
    it(`that lead in a circle are named with what to move away: ${place}`, async () => {
      using it = await rotatedHost(0);
      const path = join(it.trust, place);
      rmSync(path, { recursive: true });
      symlinkSync(path, path);
      const { facts } = await rejectsCode('TRUST_STORE_DAMAGED', it.boot().refresh());
      assert.equal(join(String(facts['path'])), path.replace(/\/$/, ''));
      rmSync(path);
      await it.boot().refresh();
    });
  }

  const toNowhere = [
    { place: 'roots', rotations: 0 },
    { place: '.', rotations: 0 },
    // This is not a lost history, because no root can be copied through such a link.
    { place: 'roots', rotations: 3 },
  ];
  for (const { place, rotations } of toNowhere) {
    it(`to nowhere are not made a directory behind them: ${place} after ${rotations} rotations`, async () => {
      using it = await rotatedHost(rotations);
      const path = join(it.trust, place);
      rmSync(path, { recursive: true });
      symlinkSync(join(it.path, 'nowhere'), path);
      const { facts } = await rejectsCode('TRUST_STORE_DAMAGED', it.boot().refresh());
      assert.equal(join(String(facts['path'])), path.replace(/\/$/, ''));
      assert.equal(existsSync(join(it.path, 'nowhere')), false);
    });
  }
});
