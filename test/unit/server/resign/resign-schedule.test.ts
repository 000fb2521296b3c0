import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ServedState } from '../../../../src/server/resign/repository-view.js';
import { dueRoles, nextResignAt, resignRetryDelay } from '../../../../src/server/resign/resign-schedule.js';

const state: ServedState = {
  roles: {
    snapshot: { version: 1, signedAtMs: 0, expiresMs: 4000 },
    timestamp: { version: 1, signedAtMs: 0, expiresMs: 400 },
  },
  problems: [],
  pending: [],
  missing: [],
};

describe('re-signing schedule', () => {
  it('requires a signature after a quarter of the validity period', () => {
    assert.equal(nextResignAt({ signedAtMs: 1000, expiresMs: 9000 }), 3000);
    assert.equal(nextResignAt({ signedAtMs: 1000, expiresMs: 1000 }), 1000);
  });

  it('signs the timestamp alone as long as the snapshot has time', () => {
    assert.deepEqual(dueRoles(state, 99), []);
    assert.deepEqual(dueRoles(state, 100), ['timestamp']);
    assert.deepEqual(dueRoles(state, 999), ['timestamp']);
    assert.deepEqual(dueRoles(state, 1000), ['snapshot', 'timestamp']);
  });

  it('signs both at once for a publish that waits', () => {
    assert.deepEqual(dueRoles({ ...state, pending: ['2.targets.json'] }, 0), ['snapshot', 'timestamp']);
  });

  it('signs at once what a new root took from its old keys', () => {
    const outdated = (role: 'root' | 'snapshot' | 'timestamp' | 'targets') =>
      dueRoles({ ...state, problems: [{ role, code: 'SIGNATURE_WRONG_KEY', message: '' }] }, 0);
    assert.deepEqual(outdated('timestamp'), ['timestamp']);
    assert.deepEqual(outdated('snapshot'), ['snapshot', 'timestamp']);
    assert.deepEqual(outdated('targets'), [], 'people sign these');
  });

  it('signs nothing over a snapshot or timestamp that it cannot read', () => {
    const { snapshot, timestamp } = state.roles;
    const pending = ['2.targets.json'];
    if (snapshot === undefined || timestamp === undefined) throw new Error('the fixture has both');
    assert.deepEqual(dueRoles({ ...state, pending, roles: { snapshot } }, 9999), []);
    assert.deepEqual(dueRoles({ ...state, pending, roles: { timestamp } }, 9999), []);
  });

  it('waits longer after each failure, up to ten minutes', () => {
    assert.deepEqual(
      [1, 2, 3, 7, 8, 9, 100_000].map(resignRetryDelay),
      [5000, 10_000, 20_000, 320_000, 600_000, 600_000, 600_000],
    );
  });
});
