import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isWritError } from '../../../../src/core/errors.js';
import { parseRoleFile } from '../../../../src/server/files/role-file.js';

const bytes = (signed: unknown): Buffer => Buffer.from(JSON.stringify({ signatures: [], signed }));
const whole = {
  _type: 'timestamp',
  version: 7,
  expires: '2026-11-08T00:00:00Z',
  meta: { 'snapshot.json': { version: 3 } },
  writ: { signedAt: '2026-11-01T00:00:00Z' },
};

describe('role file', () => {
  it('gives version, times and the versions it lists', () => {
    assert.deepEqual(parseRoleFile(bytes(whole), 'timestamp'), {
      version: 7,
      expiresMs: Date.UTC(2026, 10, 8),
      signedAtMs: Date.UTC(2026, 10, 1),
      meta: new Map([['snapshot.json', 3]]),
      restartedAfter: new Map(),
      delegated: [],
      signedBy: new Set(),
      keyIds: new Map(),
    });
  });

  it('gives the version before the restart of each role, without what is no version', () => {
    const restarts = { team: { version: 9, after: 2 }, first: { version: 9, after: 0 }, odd: 'x' };
    const { restartedAfter } = parseRoleFile(bytes({ ...whole, writ: { restarts } }), 'timestamp');
    assert.deepEqual([...restartedAfter], [['team', 2]]);
  });

  it('gives the key ids that signed, and those that a root gives to each role', () => {
    const signed = { ...whole, _type: 'root', roles: { timestamp: { keyids: ['a', 1, 'b'] }, odd: 7 } };
    const file = { signatures: [{ keyid: 'x', sig: '' }, null, { keyid: 3 }], signed };
    const { signedBy, keyIds } = parseRoleFile(Buffer.from(JSON.stringify(file)), 'root');
    assert.deepEqual([...signedBy], ['x']);
    assert.deepEqual(Object.fromEntries(keyIds), { timestamp: ['a', 'b'], odd: [] });
  });

  it('does without signedAt and meta, and leaves out an entry that is no version', () => {
    const { writ: _writ, ...rest } = whole;
    const role = parseRoleFile(
      bytes({ ...rest, meta: { 'a.json': { version: 'x' }, 'b.json': 1 } }),
      'timestamp',
    );
    assert.equal(role.signedAtMs, undefined);
    assert.equal(role.meta.size, 0);
    const { meta: _meta, ...none } = rest;
    assert.equal(parseRoleFile(bytes(none), 'timestamp').meta.size, 0);
  });

  const refused: readonly (readonly [string, Buffer])[] = [
    ['no JSON', Buffer.from('<html>')],
    ['cut JSON', bytes(whole).subarray(0, 40)],
    ['null', Buffer.from('null')],
    ['an array', Buffer.from('[]')],
    ['no signed', Buffer.from('{}')],
    ['another role', bytes({ ...whole, _type: 'snapshot' })],
    ['version 0', bytes({ ...whole, version: 0 })],
    ['a version that is no integer', bytes({ ...whole, version: 1.5 })],
    ['a version that is text', bytes({ ...whole, version: '1' })],
    ['no expiry', bytes({ ...whole, expires: undefined })],
    ['a day that does not exist', bytes({ ...whole, expires: '2026-02-30T00:00:00Z' })],
  ];
  for (const [what, input] of refused) {
    it(`refuses ${what}`, () => {
      assert.throws(
        () => parseRoleFile(input, 'timestamp'),
        (error) => isWritError(error) && error.code === 'METADATA_MALFORMED',
      );
    });
  }
});
