// `writ verify` of the backups: its final report has the state that its last scan found.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { verifyPolicy } from '../../../../src/agent/integrity/verify-policy.js';
import { exclusiveAlone } from '../../../../src/agent/job/exclusive.js';
import { boundAnswer } from '../../../../src/core/protocol/control-protocol.js';
import type { VerifyResult } from '../../../../src/core/status/verify-report.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, type TestHostOptions, testHost } from '../../../kit/host/test-host.js';

/** Generation 1 is the backup of generation 2. */
async function twoGenerations(options: TestHostOptions = {}): Promise<TestHost> {
  const test = testHost(options);
  for (const serial of [1, 2]) {
    await test.publish('access', { 'policy.yaml': `version: ${serial}\n` }, { serial });
    assert.equal((await test.pull()).outcome, 'activated');
  }
  return test;
}

function verify({ host }: TestHost, repair: 'yes' | 'no'): Promise<VerifyResult> {
  return verifyPolicy({
    host: () => host,
    repair,
    by: 'a test',
    signal: new AbortController().signal,
    onEvent: () => undefined,
    exclusive: exclusiveAlone,
  });
}

const roles = ({ generations }: VerifyResult): unknown[] =>
  generations.map(({ generation, role, damage }) => [generation, role, damage.length]);

/** @returns the path of a retained file of release 1, the oldest */
function kept({ host }: TestHost, name: string): string {
  const directory = join(host.paths.archives, 'access');
  const [release = ''] = fs.readdirSync(directory).sort();
  return join(directory, release, name);
}

/** Asserts that a repair of the backup changes nothing, and reports the damage. */
async function staysDamaged(test: TestHost): Promise<void> {
  const result = await verify(test, 'yes');
  assert.deepEqual([result.outcome, result.exitCode], ['damaged', 1]);
  assert.deepEqual(
    result.unrepaired?.map(({ end }) => end),
    ['kept'],
  );
  assert.equal(test.host.ledger.read().previous, 1);
}

describe('a damaged backup', () => {
  it('is reported and not changed without a repair', async () => {
    using test = await twoGenerations();
    fs.writeFileSync(kept(test, 'archive.tar.br'), 'x');
    const result = await verify(test, 'no');
    assert.deepEqual([result.outcome, result.exitCode], ['damaged', 1]);
    assert.deepEqual(roles(result), [
      [2, 'active', 0],
      [1, 'previous', 1],
    ]);
    assert.equal(fs.readFileSync(kept(test, 'archive.tar.br'), 'utf8'), 'x');
  });

  it('is reported with any amount of damage', async () => {
    using test = await twoGenerations();
    const tree = fs.realpathSync(join(test.host.paths.generations, '1', 'access'));
    const directory = join(tree, 'x'.repeat(200), 'y'.repeat(200), 'z'.repeat(200));
    fs.mkdirSync(directory, { recursive: true });
    for (let n = 0; n < 300; n += 1) fs.writeFileSync(join(directory, `${n}${'n'.repeat(200)}`), '');
    const answer = boundAnswer(await verify(test, 'no'));
    assert.deepEqual(
      answer.generations.map(({ generation, damage }) => [generation, damage.length > 0]),
      [
        [2, false],
        [1, true],
      ],
    );
    assert.equal(answer.truncated, undefined);
  });

  it('with a lost retained archive is repaired as the same generation', async () => {
    using test = await twoGenerations();
    fs.rmSync(kept(test, 'archive.tar.br'));
    const result = await verify(test, 'yes');
    assert.deepEqual([result.outcome, result.exitCode], ['repaired', 0]);
    assert.deepEqual(roles(result), [
      [2, 'active', 0],
      [1, 'previous', 0],
    ]);
    assert.equal((await verify(test, 'no')).outcome, 'intact');
  });

  it('with an edited tree is repaired as a new tree, which the ledger names', async () => {
    using test = await twoGenerations();
    const { host } = test;
    fs.writeFileSync(join(host.paths.generations, '1/access/policy.yaml'), 'version: 9\n');
    const result = await verify(test, 'yes');
    assert.deepEqual([result.outcome, result.exitCode], ['repaired', 0]);
    assert.deepEqual(roles(result), [
      [2, 'active', 0],
      [3, 'previous', 0],
    ]);
    assert.equal(host.ledger.read().previous, 3);
    assert.equal(fs.readlinkSync(host.paths.current), 'generations/2');
  });

  it('that cannot be downloaded again is removed from the backups, and the policy counts as intact', async () => {
    using test = await twoGenerations();
    const { host } = test;
    fs.rmSync(kept(test, 'record.json'));
    const result = await verify(test, 'yes');
    assert.deepEqual([result.outcome, result.exitCode], ['repaired', 0]);
    assert.deepEqual(roles(result), [[2, 'active', 0]]);
    assert.deepEqual(
      result.unrepaired?.map(({ generation, role, end, problem }) => [generation, role, end, problem.code]),
      [[1, 'previous', 'given-up', 'STATE_DAMAGED']],
    );
    assert.deepEqual([host.ledger.read().previous, host.ledger.read().lastKnownGood], [undefined, 2]);
    const again = await verify(test, 'no');
    assert.deepEqual([again.outcome, again.exitCode, again.unrepaired], ['intact', 0, undefined]);
  });

  it('is removed also if it is the last known good generation', async () => {
    using test = await twoGenerations();
    const { host } = test;
    setLedger(host.ledger, { previous: undefined, lastKnownGood: 1 });
    fs.rmSync(kept(test, 'record.json'));
    assert.equal((await verify(test, 'yes')).exitCode, 0);
    assert.equal(host.ledger.read().lastKnownGood, undefined);
  });

  it('is kept while the repository does not answer, because its releases are unknown', async () => {
    let isUp = true;
    using test = await twoGenerations({
      source: (source) => ({
        ...source,
        fetch: (path, given) => {
          if (isUp) return source.fetch(path, given);
          return Promise.reject(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }));
        },
      }),
    });
    fs.rmSync(kept(test, 'record.json'));
    isUp = false;
    await staysDamaged(test);
  });

  it('that a rollback can restore is kept, also if its archive cannot be downloaded again', async () => {
    using test = await twoGenerations();
    fs.rmSync(kept(test, 'archive.tar.br'));
    for (const path of [...test.repository.files.keys()].filter((name) => name.startsWith('targets/')))
      test.repository.files.delete(path);
    await staysDamaged(test);
  });

  it('with a removed link is repaired, also if its tree is intact', async () => {
    using test = await twoGenerations();
    fs.rmSync(join(test.host.paths.generations, '1/access'));
    const result = await verify(test, 'yes');
    assert.deepEqual([result.outcome, result.exitCode], ['repaired', 0]);
    assert.deepEqual(roles(result), [
      [2, 'active', 0],
      [3, 'previous', 0],
    ]);
    const link = join(test.host.paths.generations, '3/access/policy.yaml');
    assert.equal(fs.readFileSync(link, 'utf8'), 'version: 1\n');
  });

  it('that is the last known good generation is recorded as that again', async () => {
    using test = await twoGenerations();
    const { host } = test;
    setLedger(host.ledger, { previous: undefined, lastKnownGood: 1 });
    fs.writeFileSync(join(host.paths.generations, '1/access/policy.yaml'), 'version: 9\n');
    const result = await verify(test, 'yes');
    assert.deepEqual(roles(result), [
      [2, 'active', 0],
      [3, 'last-known-good', 0],
    ]);
    assert.deepEqual([host.ledger.read().lastKnownGood, (await verify(test, 'no')).outcome], [3, 'intact']);
  });
});

describe('an active release without a trusted signature', () => {
  it('is reported as damaged, although each byte has the signed digest', async () => {
    using test = await twoGenerations();
    test.repository.rotate('targets');
    test.repository.targets.targets = {};
    test.repository.publish();
    await test.pull();
    const result = await verify(test, 'no');
    assert.deepEqual([result.outcome, result.exitCode, result.found], ['damaged', 1, []]);
    assert.ok(result.untrusted.some((one) => one.active));
  });
});
