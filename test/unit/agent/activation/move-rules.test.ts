// What forbids a move of `current` at the last moment, and what does not.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  canPlanAgain,
  findObstacle,
  type MoveFacts,
  obstacleText,
  type RefreshFacts,
} from '../../../../src/agent/activation/move-rules.js';

const hour = 3_600_000;
const refresh: RefreshFacts = {
  ...{ atBootMs: 0, maxAgeMs: hour, delegated: [], nowBootMs: hour, nowMs: 1000 },
  roles: { timestamp: { version: 1, expiresAtMs: 1001 } },
};
const facts: MoveFacts = { isLockInPlace: true, active: 3, expected: [3], missing: undefined, refresh };
const because = (changed: Partial<MoveFacts>): string | undefined =>
  findObstacle({ ...facts, ...changed })?.because;

describe('a move of `current`', () => {
  it('is allowed if the host matches the plan of the move', () => {
    assert.equal(because({}), undefined);
    assert.equal(because({ active: undefined, expected: [undefined] }), undefined);
    assert.equal(because({ active: 4, expected: [4, 3] }), undefined);
  });

  it('is refused without the lock, before anything else is compared', () => {
    assert.equal(because({ isLockInPlace: false, active: 9, missing: 'gone' }), 'lock');
  });

  it('is refused if `current` names another generation, none, or is not from Writ', () => {
    for (const active of [4, undefined, 'foreign'] as const) assert.equal(because({ active }), 'current');
    assert.equal(because({ active: 3, expected: [undefined] }), 'current');
  });

  it('is refused if the generation or one of its trees is missing', () => {
    assert.equal(because({ missing: 'the tree is missing' }), 'target');
  });

  it('is refused from the instant at which a role expires', () => {
    const expiring = (expiresAtMs: number) => ({
      ...refresh,
      roles: { snapshot: { version: 1, expiresAtMs } },
    });
    assert.equal(because({ refresh: expiring(1000) }), 'expired');
    assert.equal(because({ refresh: expiring(1001) }), undefined);
  });

  it('is refused if its refresh is older than the limit, and allowed at the limit', () => {
    assert.equal(because({ refresh: { ...refresh, nowBootMs: hour + 1 } }), 'age');
    assert.equal(because({ refresh: { ...refresh, nowBootMs: hour } }), undefined);
  });

  it('is planned again after each obstacle except a lost lock', () => {
    assert.deepEqual(
      (['lock', 'current', 'target', 'expired', 'age'] as const).map((one) => canPlanAgain({ because: one })),
      [false, true, true, true, true],
    );
  });

  it('names its obstacle', () => {
    assert.match(obstacleText({ because: 'lock' }).hint ?? '', /Never remove the lock file/);
    assert.match(obstacleText({ because: 'current', active: undefined }).text, /names no generation now/);
    assert.match(obstacleText({ because: 'current', active: 'foreign' }).text, /nothing that Writ made/);
    assert.match(obstacleText({ because: 'target', missing: 'x' }).text, /not complete any more: x/);
    assert.match(obstacleText({ because: 'expired', role: 'timestamp' }).text, /timestamp role has expired/);
    assert.match(obstacleText({ because: 'age', ageMs: 7_200_000 }).text, /120 minutes ago/);
  });
});
