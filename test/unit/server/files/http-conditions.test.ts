import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isNotModified, parseRange } from '../../../../src/server/files/http-conditions.js';

describe('If-None-Match', () => {
  const cases: readonly (readonly [string | undefined, boolean])[] = [
    [undefined, false],
    ['"a"', true],
    ['W/"a"', true],
    ['*', true],
    ['"x", W/"a" , "y"', true],
    ['"b"', false],
    ['a', false],
    ['', false],
  ];
  for (const [header, expected] of cases) {
    it(`${header ?? 'absent'} is ${expected ? 'a match' : 'no match'}`, () => {
      assert.equal(isNotModified(header, '"a"'), expected);
    });
  }
});

describe('Range', () => {
  const cases: readonly (readonly [string | undefined, ReturnType<typeof parseRange>])[] = [
    [undefined, undefined],
    ['bytes=0-', { first: 0, last: 9 }],
    ['bytes=0-0', { first: 0, last: 0 }],
    ['bytes=4-6', { first: 4, last: 6 }],
    ['bytes=9-', { first: 9, last: 9 }],
    ['bytes=4-99', { first: 4, last: 9 }],
    ['bytes=-3', { first: 7, last: 9 }],
    ['bytes=-99', { first: 0, last: 9 }],
    ['bytes=10-', 'unsatisfiable'],
    ['bytes=10-12', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    // What is not a valid single range is as if it were not there (RFC 9110 section 14.2).
    ['bytes=6-4', undefined],
    ['bytes=-', undefined],
    ['bytes=0-1,3-4', undefined],
    ['bytes=a-b', undefined],
    ['bytes=0-99999999999999999999', undefined],
    ['lines=0-1', undefined],
  ];
  for (const [header, expected] of cases) {
    it(`${header ?? 'absent'} of 10 bytes`, () => {
      assert.deepEqual(parseRange(header, undefined, '"a"', 10), expected);
    });
  }

  it('has nothing to give from an empty file', () => {
    assert.equal(parseRange('bytes=0-', undefined, '"a"', 0), 'unsatisfiable');
    assert.equal(parseRange('bytes=-1', undefined, '"a"', 0), 'unsatisfiable');
  });

  it('gives a part only of the file that the client began with', () => {
    assert.deepEqual(parseRange('bytes=4-6', '"a"', '"a"', 10), { first: 4, last: 6 });
    assert.equal(parseRange('bytes=4-6', '"b"', '"a"', 10), undefined);
    assert.equal(parseRange('bytes=4-6', 'W/"a"', '"a"', 10), undefined);
    assert.equal(parseRange('bytes=4-6', 'Sat, 21 Nov 2026 10:00:00 GMT', '"a"', 10), undefined);
  });
});
