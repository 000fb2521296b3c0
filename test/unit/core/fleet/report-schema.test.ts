import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hostNamePattern } from '../../../../src/core/fleet/report-schema.js';

describe('the name of a host', () => {
  const pattern = new RegExp(hostNamePattern, 'u');

  it('has a letter or a digit, and no invisible character', () => {
    for (const name of ['web-1', 'a', '7', 'Büro 3', 'fd00::1', 'ホスト'])
      assert.ok(pattern.test(name), name);
    const blank = ['   ', '---', '\u3164', '\u2800', 'web\u3164', 'web\u200b', 'web\n', '\u0301', ''];
    for (const name of blank) assert.equal(pattern.test(name), false, JSON.stringify(name));
  });
});
