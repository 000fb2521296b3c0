import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agreedRoles } from '../../../../src/fleet/queries/role-rules.js';

const roleVersion = (version: number, expiresAtMs = version * 10, role = 'timestamp') => [
  { role, version, expiresAtMs },
];
const versions = (...reported: Parameters<typeof agreedRoles>[0]): number[] =>
  agreedRoles(reported).map(({ version }) => version);

describe('the merged roles of hosts', () => {
  it('are the median of all hosts: a false report or old metadata of one host has no effect', () => {
    assert.deepEqual(versions(roleVersion(5), roleVersion(5), roleVersion(Number.MAX_SAFE_INTEGER)), [5]);
    assert.deepEqual(versions(roleVersion(5), roleVersion(5), roleVersion(1)), [5]);
    assert.deepEqual(agreedRoles([roleVersion(5), roleVersion(5), roleVersion(5, 0)]), roleVersion(5));
    assert.deepEqual(
      agreedRoles([roleVersion(5, 30), roleVersion(5, 10), roleVersion(5, 20)]),
      roleVersion(5, 20),
    );
    assert.deepEqual(
      agreedRoles([roleVersion(4, 30), roleVersion(5, 10), roleVersion(6, 20)]),
      roleVersion(5, 10),
    );
  });

  it('are the newer version of two, and the only version of one', () => {
    assert.deepEqual(versions(roleVersion(4), roleVersion(5)), [5]);
    assert.deepEqual(versions(roleVersion(4)), [4]);
    assert.deepEqual(versions([], roleVersion(4)), [4]);
    assert.deepEqual(versions(), []);
  });

  it('count a host once, however often it names a role', () => {
    const often = [9, 9, 9, 9].flatMap((version) => roleVersion(version));
    assert.deepEqual(versions(roleVersion(5), roleVersion(5), often), [5]);
  });

  it('are sorted by expiry', () => {
    const roles = agreedRoles([[...roleVersion(1, 300, 'root'), ...roleVersion(1, 100)]]).map(
      ({ role }) => role,
    );
    assert.deepEqual(roles, ['timestamp', 'root']);
  });
});
