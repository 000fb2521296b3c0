// The rules of the trust floors: the boot and bootstrap root that a copy belongs to, and the files below a floor.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TrustedSet } from '../../../../src/core/tuf/trusted-set.js';
import {
  findBelowFloor,
  floorsOf,
  floorsText,
  parseFloors,
} from '../../../../src/trust/store/floor-rules.js';

const owner = { boot: 'boot-1', bootstrap: 'ab' };
const floors = { root: 2, timestamp: 9, snapshot: 5, targets: 4 };
const known = { mark: 'm', floors };

function setOf(versions: Partial<typeof floors>): TrustedSet {
  const meta = { 'targets.json': { version: 1 } };
  const entries = Object.entries(versions).map(([role, version]) => [role, { signed: { version, meta } }]);
  return Object.fromEntries(entries) as TrustedSet;
}

describe('the copy of the trust floors', () => {
  it('is read as it was written', () =>
    assert.deepEqual(parseFloors(floorsText(known, owner), owner), known));

  it('is read with the delegated roles, of any name', () => {
    const delegated = JSON.parse('{"team.json":3,"__proto__.json":1,"__proto__":2}');
    const all = { mark: 'm', floors: { ...floors, delegated } };
    assert.deepEqual(parseFloors(floorsText(all, owner), owner), all);
  });

  it('counts for its own boot and bootstrap root only', () => {
    const text = floorsText(known, owner);
    assert.equal(parseFloors(text, { ...owner, boot: 'boot-2' }), 'foreign');
    assert.equal(parseFloors(text, { ...owner, bootstrap: 'cd' }), 'foreign');
  });

  const damaged = [
    '',
    '{',
    'null',
    '[]',
    JSON.stringify({ writ: 1, ...owner, mark: 'm', root: 2, timestamp: 9, snapshot: 5 }),
    JSON.stringify({ writ: 1, ...owner, mark: 'm', ...floors, more: 1 }),
    JSON.stringify({ writ: 1, ...owner, mark: 'm', ...floors, root: 0 }),
    JSON.stringify({ writ: 1, ...owner, mark: 'm', ...floors, root: '2' }),
    JSON.stringify({ writ: 2, ...owner, mark: 'm', ...floors }),
    JSON.stringify({ writ: 1, ...owner, mark: 'm', ...floors, delegated: [3] }),
    JSON.stringify({ writ: 1, ...owner, mark: 'm', ...floors, delegated: { 'team.json': '3' } }),
    JSON.stringify({ writ: 1, ...owner, ...floors }),
  ];
  for (const text of damaged)
    it(`is damaged as ${text.slice(-40)}`, () => assert.equal(parseFloors(text, owner), 'damaged'));

  it('is of a set with all roles only', () => {
    assert.deepEqual(floorsOf(setOf(floors)), floors);
    assert.equal(floorsOf(setOf({ root: 2, timestamp: 9 })), undefined);
  });
});

describe('a file below its trust floor', () => {
  const codeOf = (set: Partial<typeof floors>, role: keyof typeof floors): string | undefined =>
    findBelowFloor(setOf(set), role, floors)?.code;

  it('is a rollback, for each role', () => {
    assert.equal(codeOf({ root: 1 }, 'root'), 'METADATA_ROLLBACK');
    assert.equal(codeOf({ root: 2, timestamp: 8 }, 'timestamp'), 'METADATA_ROLLBACK');
    assert.equal(codeOf({ root: 2, snapshot: 4 }, 'snapshot'), 'METADATA_ROLLBACK');
    assert.equal(codeOf({ root: 2, targets: 3 }, 'targets'), 'METADATA_ROLLBACK');
  });

  it('is none at the floor, and none without floors', () => {
    for (const role of ['root', 'timestamp', 'snapshot', 'targets'] as const)
      assert.equal(codeOf(floors, role), undefined);
    assert.equal(findBelowFloor(setOf({ root: 1 }), 'root', undefined), undefined);
  });

  it('is none under a newer root, which may have replaced the keys of the role', () => {
    assert.equal(codeOf({ root: 3, timestamp: 1 }, 'timestamp'), undefined);
    assert.equal(codeOf({ root: 1, timestamp: 1 }, 'timestamp'), 'METADATA_ROLLBACK');
  });
});
