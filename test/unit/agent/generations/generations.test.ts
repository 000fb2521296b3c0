import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  activeGenerationNumber,
  linkedTrees,
  listGenerations,
  listTrees,
  pointCurrentAt,
  readActive,
  readGeneration,
  removeCurrent,
} from '../../../../src/agent/generations/generations.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

async function oneGeneration(test: TestHost): Promise<void> {
  await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
  assert.equal((await test.pull()).exitCode, 0);
}

describe('the current link', () => {
  it('is absent on a new host, and gone after it was removed', async () => {
    using test = testHost();
    const { paths, durable } = test.host;
    assert.equal(activeGenerationNumber(paths), undefined);
    assert.equal(readActive(paths), undefined);
    pointCurrentAt(paths, durable, { generation: 3, cycle: 'c-1' });
    assert.equal(activeGenerationNumber(paths), 3);
    assert.equal(fs.readlinkSync(paths.current), 'generations/3');
    removeCurrent(paths, durable);
    assert.equal(activeGenerationNumber(paths), undefined);
  });

  it('is refused and not changed if Writ did not create it', async () => {
    using test = testHost();
    const { paths } = test.host;
    for (const target of ['/etc', 'generations/0', '../policy/generations/1', 'generations/1/']) {
      fs.symlinkSync(target, paths.current);
      throwsCode('STATE_DAMAGED', () => activeGenerationNumber(paths));
      const result = await test.pull();
      assert.deepEqual([result.outcome, result.problems[0]?.code], ['failed', 'STATE_DAMAGED']);
      assert.equal(fs.readlinkSync(paths.current), target);
      fs.unlinkSync(paths.current);
    }
    fs.mkdirSync(paths.current);
    throwsCode('STATE_DAMAGED', () => activeGenerationNumber(paths));
  });
});

describe('a generation', () => {
  it('names its trees', async () => {
    using test = testHost();
    await oneGeneration(test);
    const { entries } = readGeneration(test.host.paths, 1);
    assert.deepEqual(
      entries.map((one) => [one.bundle, one.tree.serial, one.tree.generation]),
      [['access', 1, 1]],
    );
    assert.equal(fs.readFileSync(join(entries[0]!.treePath, 'policy.yaml'), 'utf8'), '1');
  });

  it('is damaged if it, a tree or a link is missing or not from Writ', async () => {
    using test = testHost();
    await oneGeneration(test);
    const { paths } = test.host;
    throwsCode('STATE_DAMAGED', () => readGeneration(paths, 2));
    fs.writeFileSync(join(paths.generations, '1', 'note'), '');
    throwsCode('STATE_DAMAGED', () => readGeneration(paths, 1));
    fs.unlinkSync(join(paths.generations, '1', 'note'));
    fs.symlinkSync('/etc', join(paths.generations, '1', 'other'));
    throwsCode('STATE_DAMAGED', () => readGeneration(paths, 1));
    fs.unlinkSync(join(paths.generations, '1', 'other'));
    fs.rmSync(join(paths.bundles, 'access'), { recursive: true });
    throwsCode('STATE_DAMAGED', () => readGeneration(paths, 1));
  });

  it('is listed by its number, a tree by its name, and a lost tree by its link', async () => {
    using test = testHost();
    await oneGeneration(test);
    const { paths } = test.host;
    fs.mkdirSync(join(paths.generations, 'old'));
    fs.mkdirSync(join(paths.generations, '10'));
    fs.writeFileSync(join(paths.bundles, 'README'), '');
    assert.deepEqual(listGenerations(paths), [1, 10]);
    const [tree] = fs.readdirSync(join(paths.bundles, 'access'));
    const path = join(paths.bundles, 'access', tree!);
    assert.deepEqual(listTrees(paths), [{ bundle: 'access', path }]);
    assert.deepEqual(linkedTrees(paths, 1), [`access/${tree}`]);
    fs.rmSync(path, { recursive: true });
    fs.symlinkSync('/etc', join(paths.generations, '1', 'foreign'));
    assert.deepEqual(listTrees(paths), []);
    assert.deepEqual(linkedTrees(paths, 1), [`access/${tree}`]);
    throwsCode('STATE_DAMAGED', () => linkedTrees(paths, 2));
  });
});
