// Formatted numbers and times at their limits.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isoTime } from '../../../../src/core/text/iso-time.js';
import { ownPath } from '../../../../src/fleet/page/addresses.js';
import {
  ageText,
  counted,
  leftText,
  shareText,
  skewText,
  timeText,
} from '../../../../src/fleet/page/words.js';

describe('formatted texts of the pages', () => {
  it('have commas in counts, and the singular for one host', () => {
    assert.equal(counted(1, 'host'), '1 host');
    assert.equal(counted(1_000_000, 'host'), '1,000,000 hosts');
  });

  it('show an age in one or two units', () => {
    const table = [
      [-5, '0 s'],
      [999, '0 s'],
      [40_000, '40 s'],
      [260_000, '4 min 20 s'],
      [3_600_000, '1 h'],
      [90_000_000, '1 d'],
    ] as const;
    for (const [ms, text] of table) assert.equal(ageText(ms), text);
  });

  it('show a dash for a time outside the calendar', () => {
    assert.equal(timeText(Number.MAX_SAFE_INTEGER), '-');
    assert.equal(isoTime(Number.NaN), undefined);
    assert.equal(timeText(0), '1970-01-01 00:00:00 UTC');
  });

  it('never show 100 % while a host is missing, nor 0 % while there is one', () => {
    assert.equal(shareText(999_999, 1_000_000), '> 99 %');
    assert.equal(shareText(1, 1_000_000), '< 1 %');
    assert.equal(shareText(7, 7), '100 %');
    assert.equal(shareText(0, 0), '0 %');
  });

  it('show when a role expires, and whether a clock is ahead or behind', () => {
    assert.equal(leftText(100, 86_400_100), 'expired 1 d ago');
    assert.equal(leftText(7_200_000, 0), '2 h left');
    // As in every command: signed for a week, a minute ago.
    assert.equal(leftText(7 * 86_400_000 - 60_000, 0), '7 d left');
    assert.equal(skewText(1999), undefined);
    assert.equal(skewText(3000), '3 s ahead');
    assert.equal(skewText(-120_000), '2 min behind');
  });
});

describe('the redirect after a sign-in', () => {
  it('is a path of this server', () => {
    assert.equal(ownPath('/hosts?where=state%3Drefused'), '/hosts?where=state%3Drefused');
    for (const elsewhere of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '',
      '/\t/evil.example',
      '/a\nb',
    ])
      assert.equal(ownPath(elsewhere), '/');
  });
});
