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

describe('#unreadablePart', () => {
  const worker = { group: 'ns', uid: 53, gids: [53, 1000] };

  it('returns undefined if the user can read every part', () => {
    assert.equal(
      unreadablePart(worker, [directory('/var', 0o755), directory('/s', 0o711), file('/s/f', 0o644)]),
      undefined,
    );
  });

  it('returns the first directory that the user cannot traverse', () => {
    const parts = [directory('/', 0o755), directory('/s', 0o700), file('/s/f', 0o600)];
    assert.equal(unreadablePart(worker, parts)?.path, '/s');
  });

  it('applies the owner bits, else the group bits, else the other bits', () => {
    assert.equal(unreadablePart(worker, [file('/f', 0o040, 0, 1000)]), undefined);
    assert.equal(unreadablePart(worker, [file('/f', 0o400, 53)]), undefined);
    // The owner bits apply even if the other bits grant more.
    assert.equal(unreadablePart(worker, [file('/f', 0o044, 53)])?.path, '/f');
    assert.equal(unreadablePart(worker, [file('/f', 0o640, 0, 7)])?.path, '/f');
  });

  it('returns undefined for root', () => {
    assert.equal(unreadablePart({ ...worker, uid: 0 }, [file('/f', 0)]), undefined);
  });
});

describe('#judgePermissions', () => {
  const policy = '/var/lib/writ/policy';
  const readers = [{ group: 'ns', uid: 53, gids: [53] }];
  const groups = ['ns'];

  it('returns ok, a failure, or skip without a generation or a known user', () => {
    const granted = judgePermissions({ policy, groups, readers, parts: [file('/f', 0o644)] });
    assert.deepEqual([granted.state, granted.text], ['ok', `${policy} can be read by uid 53`]);
    const denied = judgePermissions({ policy, groups, readers, parts: [file('/f', 0o640)] });
    assert.deepEqual([denied.state, /uid 53.*\/f.*640/.test(denied.text)], ['FAIL', true]);
    assert.equal(judgePermissions({ policy, groups, readers }).state, 'skip');
    assert.equal(judgePermissions({ policy, groups, readers: [], parts: [] }).state, 'skip');
  });

  it('names the groups without a known user, which may be unable to read policy', () => {
    const judged = judgePermissions({ policy, groups: ['ns', 'app'], readers, parts: [file('/f', 0o644)] });
    assert.match(judged.text, /by uid 53; the user of app is unknown$/);
  });
});

describe('#judgeConfinement', () => {
  const worker = { group: 'ns', pid: 7, profile: '/usr/sbin/named (enforce)', isMentioned: false } as const;

  it('warns if an enforced profile does not mention the policy directory', () => {
    assert.equal(judgeConfinement([worker], '/p').state, 'warn');
    assert.equal(judgeConfinement([{ ...worker, isMentioned: true }], '/p').state, 'ok');
    assert.equal(judgeConfinement([{ ...worker, profile: 'unconfined' }], '/p').state, 'ok');
    assert.equal(judgeConfinement([{ ...worker, profile: 'named (complain)' }], '/p').state, 'ok');
    assert.equal(judgeConfinement([], '/p').state, 'skip');
  });
});
