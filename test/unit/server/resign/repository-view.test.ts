import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createRepositoryView } from '../../../../src/server/resign/repository-view.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import {
  fixtureExpires,
  replaceFile,
  roleBytes,
  writeRepository,
} from '../../../kit/repository/unsigned-repository.js';

function repository(): TempDir {
  const dir = tempDir();
  writeRepository(dir.path);
  return dir;
}

const codes = (view: ReturnType<typeof createRepositoryView>): string[] =>
  view.read().problems.map(({ role, code }) => `${role} ${code}`);

describe('repository state', () => {
  it('has version and expiry of the four roles', () => {
    using dir = repository();
    const { roles, problems, pending } = createRepositoryView(dir.path).read();
    assert.deepEqual(Object.keys(roles).sort(), ['root', 'snapshot', 'targets', 'timestamp']);
    for (const role of Object.values(roles)) {
      assert.equal(role.version, 1);
      assert.equal(role.expiresMs, Date.parse(fixtureExpires));
    }
    assert.deepEqual([problems, pending], [[], []]);
  });

  it('reads the published files: the newest root, and the versions that timestamp and snapshot list', () => {
    using dir = repository();
    replaceFile(dir.path, 'metadata/2.root.json', roleBytes('root', { version: 2 }));
    replaceFile(dir.path, 'metadata/10.root.json', roleBytes('root', { version: 10 }));
    replaceFile(dir.path, 'metadata/2.snapshot.json', roleBytes('snapshot', { version: 2 }));
    const { roles } = createRepositoryView(dir.path).read();
    assert.equal(roles.root?.version, 10);
    assert.equal(roles.snapshot?.version, 1);
  });

  it('takes the time of signing from the file, else from its mtime, and never after its expiry', () => {
    using dir = repository();
    const writ = { signedAt: '2026-11-01T00:00:00Z' };
    const meta = { 'snapshot.json': { version: 1 } };
    replaceFile(dir.path, 'metadata/timestamp.json', roleBytes('timestamp', { version: 1, meta, writ }));
    fs.utimesSync(dir.join('metadata/1.snapshot.json'), 1_790_000_000, 1_790_000_000);
    const targets = roleBytes('targets', { version: 1, expires: '2027-01-01T00:00:00Z' });
    replaceFile(dir.path, 'metadata/1.targets.json', targets);
    fs.utimesSync(dir.join('metadata/1.targets.json'), 1_900_000_000, 1_900_000_000);
    const { roles } = createRepositoryView(dir.path).read();
    assert.equal(roles.timestamp?.signedAtMs, Date.UTC(2026, 10, 1));
    assert.equal(roles.snapshot?.signedAtMs, 1_790_000_000_000);
    assert.equal(roles.targets?.signedAtMs, roles.targets?.expiresMs);
  });

  it('names files that are newer than the snapshot knows', () => {
    using dir = repository();
    replaceFile(dir.path, 'metadata/2.targets.json', roleBytes('targets', { version: 2 }));
    replaceFile(dir.path, 'metadata/3.targets.json', roleBytes('targets', { version: 3 }));
    replaceFile(dir.path, 'metadata/9.unheard-of.json', roleBytes('targets', { version: 9 }));
    assert.deepEqual(createRepositoryView(dir.path).read().pending, ['3.targets.json']);
  });

  it('reports a missing role, and the roles that it lists as missing', () => {
    using dir = repository();
    fs.rmSync(dir.join('metadata/timestamp.json'));
    const view = createRepositoryView(dir.path);
    assert.deepEqual(codes(view), [
      'timestamp METADATA_MISSING',
      'snapshot METADATA_MISSING',
      'targets METADATA_MISSING',
    ]);
    fs.rmSync(dir.path, { recursive: true });
    assert.equal(codes(view).length, 4);
    fs.mkdirSync(dir.path);
  });

  it('reports a malformed or too long role', () => {
    using dir = repository();
    replaceFile(dir.path, 'metadata/1.targets.json', 'nonsense');
    replaceFile(dir.path, 'metadata/1.root.json', Buffer.alloc(600_000, 0x20));
    const expected = ['root METADATA_MALFORMED', 'targets METADATA_MALFORMED'];
    assert.deepEqual(codes(createRepositoryView(dir.path)), expected);
  });

  it('reports a role that is signed by keys which the newest root no longer lists', () => {
    using dir = repository();
    const roles = { timestamp: { keyids: ['new'] }, snapshot: { keyids: ['new', 'old'] } };
    replaceFile(dir.path, 'metadata/2.root.json', roleBytes('root', { version: 2, roles }));
    for (const name of ['timestamp.json', '1.snapshot.json']) {
      const file = JSON.parse(fs.readFileSync(dir.join('metadata', name), 'utf8'));
      const signed = { ...file, signatures: [{ keyid: 'old', sig: '' }] };
      replaceFile(dir.path, `metadata/${name}`, JSON.stringify(signed));
    }
    assert.deepEqual(codes(createRepositoryView(dir.path)), ['timestamp SIGNATURE_WRONG_KEY']);
  });

  it('reports a role that cannot be opened', () => {
    using dir = repository();
    fs.rmSync(dir.join('metadata/1.targets.json'));
    fs.symlinkSync('1.targets.json', dir.join('metadata/1.targets.json'));
    assert.deepEqual(codes(createRepositoryView(dir.path)), ['targets METADATA_MISSING']);
  });

  it('has the listed files of delegated roles that are missing', () => {
    using dir = repository();
    const delegations = { keys: {}, roles: ['dns-team', 'web', 'new'].map((name) => ({ name, keyids: [] })) };
    replaceFile(dir.path, 'metadata/1.targets.json', roleBytes('targets', { version: 1, delegations }));
    const listed = ['targets', 'dns-team', 'web', 'former'].map((name) => [`${name}.json`, { version: 1 }]);
    const meta = Object.fromEntries(listed);
    replaceFile(dir.path, 'metadata/1.snapshot.json', roleBytes('snapshot', { version: 1, meta }));
    replaceFile(dir.path, 'metadata/1.web.json', roleBytes('targets', { version: 1 }));
    replaceFile(dir.path, 'metadata/2.dns-team.json', roleBytes('targets', { version: 2 }));
    const { missing, problems } = createRepositoryView(dir.path).read();
    assert.deepEqual([missing, problems], [['1.dns-team.json'], []]);
  });

  it('reads again only after a change', () => {
    using dir = repository();
    const view = createRepositoryView(dir.path);
    assert.equal(view.changed(), true);
    const first = view.current();
    assert.equal(view.changed(), false);
    assert.equal(view.current(), first);
    replaceFile(dir.path, 'metadata/2.targets.json', roleBytes('targets', { version: 2 }));
    assert.equal(view.changed(), true);
    assert.deepEqual(view.current().pending, ['2.targets.json']);
  });
});
