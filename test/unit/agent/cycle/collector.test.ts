import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createCollector, heldNow } from '../../../../src/agent/cycle/collector.js';
import type { FindGenerationUsers } from '../../../../src/agent/generations/collectable.js';
import { listGenerations } from '../../../../src/agent/generations/generations.js';
import type { GenerationUser } from '../../../../src/core/status/mount-table.js';
import type { FileOperation } from '../../../../src/platform/disk/durable-fs.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const minuteMs = 60_000;
const grace = { keep: { generations: 1, graceMs: 10 * minuteMs } };

async function generations(count: number, before?: (operation: FileOperation) => void): Promise<TestHost> {
  const test = testHost({ config: grace, ...(before ? { observer: { before } } : {}) });
  for (let serial = 1; serial <= count; serial += 1) {
    await test.publish('access', { 'policy.yaml': `version: ${serial}\n` }, { serial });
    await test.pull();
  }
  return test;
}

/** @returns a search that finds these generation users, and counts its calls */
function finds(holders: readonly GenerationUser[] = []): FindGenerationUsers & { asked: () => number } {
  let asked = 0;
  const find: FindGenerationUsers = async () => {
    asked += 1;
    return { holders, isComplete: true, processes: 1, unseen: 0 };
  };
  return Object.assign(find, { asked: () => asked });
}

const holder: GenerationUser = {
  directory: { kind: 'generation', generation: 2 },
  what: 'cwd',
  path: '/x',
  pid: 7,
};

describe('the collector', () => {
  it('collects the generations of an earlier process at its first call', async () => {
    using test = await generations(4);
    await test.clock.advance(11 * minuteMs);
    await createCollector(finds()).collectWhenDue(test.host);
    assert.deepEqual(listGenerations(test.host.paths), [3, 4]);
    assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
  });

  it('removes the staging areas that jobs could not remove, and no other files', async () => {
    let fails = true;
    using test = await generations(2, ({ op }) => {
      if (fails && op === 'stage.sweep') throw Object.assign(new Error('bad block'), { code: 'EIO' });
    });
    const { staging } = test.host.paths;
    const left = fs.readdirSync(staging);
    assert.ok(left.length > 0);
    fs.mkdirSync(join(staging, 'lost+found'));
    fs.symlinkSync(test.directory, join(staging, 'c-link'));
    const collector = createCollector(finds());
    await collector.collectWhenDue(test.host);
    assert.deepEqual(fs.readdirSync(staging).sort(), [...left, 'c-link', 'lost+found'].sort());
    assert.deepEqual(collector.report(), { held: [], problems: [] }, 'only a cycle reports it');
    fails = false;
    await test.clock.advance(5 * minuteMs);
    await collector.collectWhenDue(test.host);
    assert.deepEqual(fs.readdirSync(staging).sort(), ['c-link', 'lost+found']);
  });

  it('removes partial downloads after a day', async () => {
    using test = await generations(1);
    const { partials } = test.host.paths;
    const seconds = test.clock.nowMs() / 1000;
    for (const [letter, ageSeconds] of [
      ['a', 86_000],
      ['b', 87_000],
    ] as const) {
      const path = join(partials, letter.repeat(64));
      fs.writeFileSync(path, 'x', { mode: 0o600 });
      fs.utimesSync(path, seconds - ageSeconds, seconds - ageSeconds);
    }
    await createCollector(finds()).collectWhenDue(test.host);
    assert.deepEqual(fs.readdirSync(partials), ['a'.repeat(64)]);
  });

  it('searches for generation users only after the grace period', async () => {
    using test = await generations(4);
    const find = finds();
    const collector = createCollector(find);
    await collector.collectWhenDue(test.host);
    await test.clock.advance(4 * minuteMs);
    await collector.collectWhenDue(test.host);
    await test.clock.advance(5 * minuteMs);
    await collector.collectWhenDue(test.host);
    assert.deepEqual([find.asked(), listGenerations(test.host.paths)], [0, [1, 2, 3, 4]]);
    await test.clock.advance(2 * minuteMs);
    await collector.collectWhenDue(test.host);
    assert.deepEqual([find.asked(), listGenerations(test.host.paths)], [1, [3, 4]]);
  });

  it('reports generation users once, and searches for them again after some minutes', async () => {
    using test = await generations(4);
    await test.clock.advance(11 * minuteMs);
    const find = finds([holder]);
    const collector = createCollector(find);
    let changes = 0;
    const collectDue = () =>
      collector.collectWhenDue(test.host, () => {
        changes += 1;
      });
    await collectDue();
    await collectDue();
    assert.deepEqual([find.asked(), changes], [1, 1]);
    assert.deepEqual(
      collector.report().held.map(({ generation, pid }) => [generation, pid]),
      [[2, 7]],
    );
    await test.clock.advance(5 * minuteMs);
    await collectDue();
    assert.deepEqual([find.asked(), changes, listGenerations(test.host.paths)], [2, 1, [2, 3, 4]]);
  });

  it('reports a failed removal, and tries again later', async () => {
    let fails = true;
    using test = await generations(4, ({ op }) => {
      if (fails && op === 'commit.collect:rename') throw Object.assign(new Error('bad'), { code: 'EIO' });
    });
    await test.clock.advance(11 * minuteMs);
    const collector = createCollector(finds());
    await collector.collectWhenDue(test.host);
    assert.deepEqual(
      collector.report().problems.map(({ code }) => code),
      ['DISK_FAILED'],
    );
    fails = false;
    await collector.collectWhenDue(test.host);
    assert.equal(listGenerations(test.host.paths).length, 4, 'not in a loop');
    await test.clock.advance(5 * minuteMs);
    await collector.collectWhenDue(test.host);
    assert.deepEqual([collector.report().problems, listGenerations(test.host.paths)], [[], [3, 4]]);
  });

  it('tries again ten seconds after a full disk, and logs the same error once', async () => {
    let isFull = false;
    using test = await generations(4, ({ op }) => {
      if (isFull && op === 'commit.collect:rename')
        throw Object.assign(new Error('no space left'), { code: 'ENOSPC' });
    });
    await test.clock.advance(11 * minuteMs);
    const collector = createCollector(finds());
    isFull = true;
    let warnings = 0;
    const log = { ...test.host.log, warn: () => (warnings += 1) };
    const collectDue = async () => {
      await collector.collectWhenDue({ ...test.host, log });
      const codes = collector.report().problems.map(({ code }) => code);
      return [codes, listGenerations(test.host.paths).length];
    };
    assert.deepEqual(await collectDue(), [['DISK_FULL'], 4]);
    await test.clock.advance(10_000);
    assert.deepEqual(await collectDue(), [['DISK_FULL'], 4]);
    isFull = false;
    await test.clock.advance(9_000);
    assert.deepEqual(await collectDue(), [['DISK_FULL'], 4]);
    await test.clock.advance(1_000);
    assert.deepEqual(await collectDue(), [[], 2]);
    assert.equal(warnings, 1);
  });
});

describe('heldNow', () => {
  it('returns the users of removable generations, and an empty list on an error', async () => {
    using test = await generations(4);
    assert.deepEqual(await heldNow(test.host, finds([holder])), [], 'kept anyway');
    await test.clock.advance(11 * minuteMs);
    assert.equal((await heldNow(test.host, finds([holder])))[0]?.pid, 7);
    fs.writeFileSync(test.host.paths.journal, 'torn');
    assert.deepEqual(await heldNow(test.host, finds([holder])), []);
  });
});
