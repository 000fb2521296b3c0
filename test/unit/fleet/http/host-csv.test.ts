import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { csvCell } from '../../../../src/fleet/http/host-csv.js';

describe('a cell of CSV', () => {
  it('is no formula, whatever a host calls itself', () => {
    for (const text of ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '＝1'])
      assert.ok(csvCell(text).startsWith(`"'`), text);
    assert.equal(csvCell('web-1'), '"web-1"');
  });

  it('ends where it ends', () => {
    assert.equal(csvCell('a","b\n=c'), '"a"",""b\n=c"');
  });
});
