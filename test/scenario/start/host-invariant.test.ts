// The judge of the crash tests must distinguish complete from mixed policies, and clean from leftover files.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { holdInvariant, noPolicy, requireSwept, wholePolicy } from '../../kit/assert/host-invariant.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';

const versions = (version: number) => ({
  'a.yaml': `version: ${version}\n`,
  'b.yaml': `version: ${version}\n`,
});
const policies = {
  old: { 'access/a.yaml': 'version: 1\n', 'access/b.yaml': 'version: 1\n' },
  new: { 'access/a.yaml': 'version: 2\n', 'access/b.yaml': 'version: 2\n' },
};

async function hostWithTwoReleases(): Promise<TestHost> {
  const test = testHost();
  await test.publish('access', versions(1), { serial: 1 });
  await test.pull();
  await test.publish('access', versions(2), { serial: 2 });
  return test;
}

function fileOf(test: TestHost, name: string): string {
  return fs.realpathSync(join(test.host.paths.current, 'access', name));
}

describe('the invariant of a host', () => {
  it('holds for a host between two releases, and names the active one', async () => {
    using test = await hostWithTwoReleases();
    const open = () => test.reopen();
    const active = await holdInvariant(test.host.paths, {
      policies,
      allowed: ['old', 'new'],
      ends: 'new',
      open,
    });
    assert.equal(active, 'old');
    assert.equal(wholePolicy(test.host.paths, policies), 'new');
  });

  it('does not hold when the old policy is active after the new one was acknowledged', async () => {
    using test = await hostWithTwoReleases();
    const open = () => test.reopen();
    const held = holdInvariant(test.host.paths, { policies, allowed: ['new'], ends: 'new', open });
    await assert.rejects(held, assert.AssertionError);
  });

  it('does not hold for a mix, a missing file, or a tree that no worker can reach', async () => {
    using test = await hostWithTwoReleases();
    const { paths } = test.host;
    assert.equal(wholePolicy(paths, policies), 'old');
    fs.writeFileSync(fileOf(test, 'a.yaml'), 'version: 2\n');
    assert.throws(() => wholePolicy(paths, policies), assert.AssertionError);
    fs.rmSync(fileOf(test, 'a.yaml'));
    assert.throws(() => wholePolicy(paths, policies), assert.AssertionError);
    fs.writeFileSync(join(fileOf(test, 'b.yaml'), '..', 'a.yaml'), 'version: 1\n');
    assert.equal(wholePolicy(paths, policies), 'old');
    fs.chmodSync(paths.bundles, 0o700);
    assert.throws(() => wholePolicy(paths, policies), assert.AssertionError);
    fs.rmSync(paths.current);
    assert.equal(wholePolicy(paths, policies), noPolicy);
  });

  it('accepts the files that a crash leaves', async () => {
    using test = await hostWithTwoReleases();
    const { paths } = test.host;
    const left = [
      join(paths.staging, 'c-1'),
      paths.journal,
      join(paths.trust, '.writ-tmp-1'),
      join(paths.policy, '.current-c-1'),
    ];
    for (const path of left) {
      requireSwept(paths);
      fs.writeFileSync(path, '');
      assert.throws(() => requireSwept(paths), assert.AssertionError, path);
      fs.rmSync(path);
    }
  });
});
