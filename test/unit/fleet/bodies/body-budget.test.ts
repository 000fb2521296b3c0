// The body budget: bounds of one address, of one credential, and of all.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type BodyAccount,
  BodyBudget,
  bodyBudgetBytes,
  hostKeyShareBytes,
} from '../../../../src/fleet/bodies/body-budget.js';

const megabyte = 1024 * 1024;
const addressOf = (client: string, maxBodies?: number): BodyAccount => {
  return { kind: 'address', client, maxBodies };
};
const hostOf = (id: string): BodyAccount => ({ kind: 'credential', id, maxBytes: hostKeyShareBytes });

describe('the budget of bodies', () => {
  it('gives one address an eighth, all addresses half, and credentials what is left', () => {
    const budget = new BodyBudget();
    for (const client of ['a', 'b', 'c', 'd']) {
      assert.ok(budget.reserve(addressOf(client), 8 * megabyte), client);
      assert.equal(budget.reserve(addressOf(client), 1), undefined, client);
    }
    assert.equal(budget.reserve(addressOf('e'), 1), undefined);
    for (let at = 0; at < 32; at++) assert.ok(budget.reserve(hostOf(`host-${at}`), megabyte));
    assert.equal(budget.totalBytes, bodyBudgetBytes);
    assert.equal(budget.reserve(hostOf('one more'), 1), undefined);
  });

  it('gives one credential its own bound', () => {
    const budget = new BodyBudget();
    const held = Array.from({ length: 4 }, () => budget.reserve(hostOf('a'), megabyte / 4));
    assert.equal(budget.reserve(hostOf('a'), 1), undefined);
    assert.ok(budget.reserve(hostOf('b'), megabyte));
    held[0]?.release();
    assert.ok(budget.reserve(hostOf('a'), megabyte / 4));
  });

  it('counts the bodies of an address that have a bound on their number, and no others', () => {
    const budget = new BodyBudget();
    assert.ok(budget.reserve(addressOf('a'), 1));
    const held = Array.from({ length: 4 }, () => budget.reserve(addressOf('a', 4), 1));
    assert.ok(held.every((one) => one !== undefined));
    assert.equal(budget.reserve(addressOf('a', 4), 1), undefined);
    assert.ok(budget.reserve(addressOf('a'), 1));
    assert.ok(budget.reserve(addressOf('b', 4), 1));
    held[0]?.release();
    assert.ok(budget.reserve(addressOf('a', 4), 1));
  });

  it('releases bytes once, however often release is called', () => {
    const budget = new BodyBudget();
    const [first, second] = [budget.reserve(addressOf('a'), 5), budget.reserve(addressOf('a'), 7)];
    first?.release();
    first?.release();
    assert.equal(budget.totalBytes, 7);
    second?.release();
    assert.equal(budget.totalBytes, 0);
  });
});
