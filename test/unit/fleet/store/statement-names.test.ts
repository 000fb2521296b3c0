// Which statements PostgreSQL keeps prepared: those that come again and again, and a bounded number of them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { StatementNames } from '../../../../src/fleet/store/postgres-dialect.js';

function namedAfter(names: StatementNames, sql: string, times: number): string | undefined {
  for (let time = 1; time < times; time++) names.of(sql);
  return names.of(sql);
}

describe('names of prepared statements', () => {
  it('are for what comes a fourth time, and stay', () => {
    const names = new StatementNames();
    assert.equal(namedAfter(names, 'select 1', 3), undefined);
    assert.equal(names.of('select 1'), 'writ_1');
    assert.equal(namedAfter(names, 'select 2', 4), 'writ_2');
    assert.equal(names.of('select 1'), 'writ_1');
  });

  it('are no more than each connection may keep', () => {
    const names = new StatementNames();
    for (let at = 0; at < 200; at++) assert.ok(namedAfter(names, `select ${at}`, 4));
    assert.equal(namedAfter(names, 'select 200', 9), undefined);
    assert.equal(names.of('select 199'), 'writ_200');
  });

  it('are for none that takes whatever columns there are', () => {
    assert.equal(namedAfter(new StatementNames(), 'select * from "hosts"', 9), undefined);
  });

  it('are not taken by thousands of statements that come once', () => {
    const names = new StatementNames();
    for (let at = 0; at < 10_000; at++) assert.equal(names.of(`select ${at}`), undefined);
    assert.equal(namedAfter(names, 'select one', 4), 'writ_1');
  });
});
