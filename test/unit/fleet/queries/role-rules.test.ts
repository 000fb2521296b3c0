import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agreedRoles } from '../../../../src/fleet/queries/role-rules.js';

const word = (version: number, expiresAtMs = version * 10, role = 'timestamp') => [
  { role, version, expiresAtMs },
];
const versions = (...said: Parameters<typeof agreedRoles>[0]): number[] =>
  agreedRoles(said).map(({ version }) => version);

describe('the roles that hosts agree on', () => {
  it('are those in the middle: neither a lie nor an old copy of one host counts', () => {
    assert.deepEqual(versions(word(5), word(5), word(Number.MAX_SAFE_INTEGER)), [5]);
    assert.deepEqual(versions(word(5), word(5), word(1)), [5]);
    assert.deepEqual(agreedRoles([word(5), word(5), word(5, 0)]), word(5));
    assert.deepEqual(agreedRoles([word(5, 30), word(5, 10), word(5, 20)]), word(5, 20));
    assert.deepEqual(agreedRoles([word(4, 30), word(5, 10), word(6, 20)]), word(5, 10));
  });

  it('are the newer word of two, and the only one of one', () => {
    assert.deepEqual(versions(word(4), word(5)), [5]);
    assert.deepEqual(versions(word(4)), [4]);
    assert.deepEqual(versions([], word(4)), [4]);
    assert.deepEqual(versions(), []);
  });

  it('count a host once, however often it names a role', () => {
    const often = [9, 9, 9, 9].flatMap((version) => word(version));
    assert.deepEqual(versions(word(5), word(5), often), [5]);
  });

  it('come with the one that ends first before the others', () => {
    const roles = agreedRoles([[...word(1, 300, 'root'), ...word(1, 100)]]).map(({ role }) => role);
    assert.deepEqual(roles, ['timestamp', 'root']);
  });
});
