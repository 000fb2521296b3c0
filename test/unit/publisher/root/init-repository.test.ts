import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { readPublicKey } from '../../../../src/publisher/keys/public-key.js';
import { defaultValidityPeriods } from '../../../../src/publisher/repository/metadata-content.js';
import { type InitOptions, initRepository } from '../../../../src/publisher/root/init-repository.js';
import { openRepositoryClient } from '../../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import { memoryTrustStore } from '../../../../src/trust/store/trust-store.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';

const clock = fakeClock();

function init(dir: TempDir, given: Partial<InitOptions> = {}) {
  return initRepository({
    repository: dir.join('new', 'repo'),
    keysDirectory: dir.join('other', 'keys'),
    rootKeys: 3,
    rootThreshold: 2,
    spareRootKey: 'required',
    validity: defaultValidityPeriods,
    clock,
    durableFs: createDurableFs(),
    ...given,
  });
}

describe('initRepository', () => {
  it('makes a repository that a client verifies, with nothing in it', longCase, async () => {
    using dir = tempDir();
    const { url, rootPath } = sampleRepository(dir, { clock });
    const source = openRepositorySource(url, { clock, version: 'test' });
    const store = memoryTrustStore(fs.readFileSync(rootPath));
    const client = openRepositoryClient({ source, store, clock });
    const { roles } = await client.refresh();
    assert.deepEqual(
      Object.values(roles).map((role) => role.version),
      [1, 1, 1, 1],
    );
    assert.equal(await client.target('dns-edge', 'stable'), undefined);
  });

  it('makes one key file for each key, 0600 in a directory 0700, and a root copy beside them', () => {
    using dir = tempDir();
    const { rootPath, rootDigestHex } = init(dir);
    const keys = dir.join('other', 'keys');
    assert.equal(fs.statSync(keys).mode & 0o777, 0o700);
    const names = fs.readdirSync(keys).sort();
    const wanted = [
      'root-1.key',
      'root-1.pub',
      'root-2.key',
      'root-2.pub',
      'root-3.key',
      'root-3.pub',
      'root.json',
      'snapshot.key',
      'snapshot.pub',
      'targets.key',
      'targets.pub',
      'timestamp.key',
      'timestamp.pub',
    ];
    assert.deepEqual(names, wanted);
    for (const name of names.filter((one) => one.endsWith('.key'))) {
      assert.equal(fs.statSync(`${keys}/${name}`).mode & 0o777, 0o600);
    }
    const root = fs.readFileSync(rootPath);
    assert.deepEqual(fs.readFileSync(`${keys}/root.json`), root);
    assert.equal(createHash('sha256').update(root).digest('hex'), rootDigestHex);
  });

  it('flushes the keys before it signs anything with them', () => {
    using dir = tempDir();
    const seen: string[] = [];
    init(dir, { durableFs: createDurableFs({ after: ({ op }) => seen.push(op) }) });
    assert.ok(seen.indexOf('keys.flush') > seen.lastIndexOf('keys.create'));
    assert.ok(seen.indexOf('keys.flush') < seen.indexOf('repo.root:write'));
    assert.equal(seen.at(-1), 'repo.timestamp:flush-to');
  });

  it('locks every key file under the passphrase', () => {
    using dir = tempDir();
    init(dir, { passphrase: 'x', rootKeys: 1, rootThreshold: 1, spareRootKey: 'waived' });
    const names = fs.readdirSync(dir.join('other', 'keys')).filter((one) => one.endsWith('.key'));
    assert.deepEqual(names.sort(), ['root-1.key', 'snapshot.key', 'targets.key', 'timestamp.key']);
    for (const name of names) {
      const file = JSON.parse(fs.readFileSync(dir.join('other', 'keys', name), 'utf8'));
      assert.ok('box' in file && !('secret' in file), name);
    }
  });

  it('refuses a threshold without a spare root key, except with the flag', () => {
    using dir = tempDir();
    assert.throws(() => init(dir, { rootKeys: 2, rootThreshold: 2 }), { code: 'USAGE' });
    assert.throws(() => init(dir, { rootKeys: 1, rootThreshold: 1 }), { code: 'USAGE' });
    assert.throws(() => init(dir, { rootKeys: 2, rootThreshold: 3, spareRootKey: 'waived' }), {
      code: 'USAGE',
    });
    assert.deepEqual(fs.readdirSync(dir.path), []);
    init(dir, { rootKeys: 1, rootThreshold: 1, spareRootKey: 'waived' });
  });

  it('writes the holder of each key into the root, and a public key beside each secret one', () => {
    using dir = tempDir();
    const { rootPath } = init(dir, { rootNames: ['anna', 'Ben Müller'] });
    const { keys, roles, writ } = JSON.parse(fs.readFileSync(rootPath, 'utf8')).signed;
    const named = (role: string): string[] => roles[role].keyids.map((id: string) => writ.signers[id]);
    assert.deepEqual(named('root'), ['anna', 'Ben Müller', 'root-3']);
    assert.deepEqual(['targets', 'snapshot', 'timestamp'].flatMap(named), ['targets', 'server', 'server']);
    const ben = readPublicKey(dir.join('other', 'keys', 'root-2.pub'));
    assert.deepEqual([ben.name, ben.key], ['Ben Müller', keys[roles.root.keyids[1]]]);
  });

  it('refuses names that are none, too many, or two of one', () => {
    using dir = tempDir();
    const wrong = [['a\u001b[2J'], [''], ['a'.repeat(65)], ['a', 'a'], ['root-2'], ['a', 'b', 'c', 'd']];
    for (const rootNames of wrong) assert.throws(() => init(dir, { rootNames }), { code: 'USAGE' });
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  for (const op of ['keys.create', 'keys.public', 'repo.targets:write', 'repo.timestamp:write']) {
    it(`leaves nothing that would refuse the next attempt when the disk is full at ${op}`, () => {
      using dir = tempDir();
      const full = createDurableFs({
        before: (operation) => {
          if (operation.op === op) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
        },
      });
      throwsCode('DISK_FULL', () => init(dir, { durableFs: full }));
      init(dir);
    });
  }

  it('names a directory that cannot be made', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), '');
    const error = throwsCode('DISK_FAILED', () =>
      init(dir, { keysDirectory: dir.join('file', 'of', 'keys') }),
    );
    assert.equal(error.facts['path'], dir.join('file'));
  });

  it('never touches a repository or a key that is there', () => {
    using dir = tempDir();
    init(dir);
    assert.throws(() => init(dir), { code: 'REPOSITORY_EXISTS' });
    assert.throws(() => init(dir, { repository: dir.join('second') }), { code: 'KEY_EXISTS' });
    assert.ok(!fs.existsSync(dir.join('second')));
    fs.mkdirSync(dir.join('elsewhere'));
    fs.writeFileSync(dir.join('elsewhere', 'root.json'), 'the root of another repository');
    const other = { repository: dir.join('third'), keysDirectory: dir.join('elsewhere') };
    assert.throws(() => init(dir, other), { code: 'KEY_EXISTS' });
    assert.deepEqual(fs.readdirSync(dir.join('elsewhere')), ['root.json']);
  });
});
