import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  judgeConfinement,
  judgePermissions,
  type PathPart,
  unreadablePart,
} from '../../../../src/agent/doctor/check-access.js';

const directory = (path: string, mode: number, uid = 0, gid = 0): PathPart => ({
  ...{ path, kind: 'directory', mode, uid, gid },
});
const file = (path: string, mode: number, uid = 0, gid = 0): PathPart => ({
  path,
  kind: 'file',
  mode,
  uid,
  gid,
});

describe('what a user can read', () => {
  const worker = { group: 'ns', uid: 53, gids: [53, 1000] };

  it('is all of a way that is open', () => {
    assert.equal(
      unreadablePart(worker, [directory('/var', 0o755), directory('/s', 0o711), file('/s/f', 0o644)]),
      undefined,
    );
  });

  it('ends at the first directory that it cannot pass', () => {
    const parts = [directory('/', 0o755), directory('/s', 0o700), file('/s/f', 0o600)];
    assert.equal(unreadablePart(worker, parts)?.path, '/s');
  });

  it('goes by the owner, else by one of its groups, else by the others', () => {
    assert.equal(unreadablePart(worker, [file('/f', 0o040, 0, 1000)]), undefined);
    assert.equal(unreadablePart(worker, [file('/f', 0o400, 53)]), undefined);
    // The owner's part counts, be it less than what others have.
    assert.equal(unreadablePart(worker, [file('/f', 0o044, 53)])?.path, '/f');
    assert.equal(unreadablePart(worker, [file('/f', 0o640, 0, 7)])?.path, '/f');
  });

  it('is everything for root', () => {
    assert.equal(unreadablePart({ ...worker, uid: 0 }, [file('/f', 0)]), undefined);
  });
});

describe('permissions', () => {
  const policy = '/var/lib/writ/policy';
  const readers = [{ group: 'ns', uid: 53, gids: [53] }];
  const groups = ['ns'];

  it('are ok, a failure, or nothing to look at', () => {
    const granted = judgePermissions({ policy, groups, readers, parts: [file('/f', 0o644)] });
    assert.deepEqual([granted.state, granted.text], ['ok', `${policy} can be read by uid 53`]);
    const denied = judgePermissions({ policy, groups, readers, parts: [file('/f', 0o640)] });
    assert.deepEqual([denied.state, /uid 53.*\/f.*640/.test(denied.text)], ['FAIL', true]);
    assert.equal(judgePermissions({ policy, groups, readers }).state, 'skip');
    assert.equal(judgePermissions({ policy, groups, readers: [], parts: [] }).state, 'skip');
  });

  it('names the groups of which no user is known: they may be unable to', () => {
    const judged = judgePermissions({ policy, groups: ['ns', 'app'], readers, parts: [file('/f', 0o644)] });
    assert.match(judged.text, /by uid 53; the user of app is unknown$/);
  });
});

describe('confinement', () => {
  const worker = { group: 'ns', pid: 7, profile: '/usr/sbin/named (enforce)', mentioned: 'no' } as const;

  it('is a warning when no profile names the policy', () => {
    assert.equal(judgeConfinement([worker], '/p').state, 'warn');
    assert.equal(judgeConfinement([{ ...worker, mentioned: 'yes' }], '/p').state, 'ok');
    assert.equal(judgeConfinement([{ ...worker, profile: 'unconfined' }], '/p').state, 'ok');
    assert.equal(judgeConfinement([{ ...worker, profile: 'named (complain)' }], '/p').state, 'ok');
    assert.equal(judgeConfinement([], '/p').state, 'skip');
  });
});
