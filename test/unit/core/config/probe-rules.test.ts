import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mistakes } from './parsed-text.js';

const text = (uses: string, run: string): string => `repository: https://policy.example.net/
bundles: [{name: a, checks: [{name: c, run: ["true"]}]}, {name: b, checks: [{name: c, run: ["true"]}]}]
workers: [{name: w, uses: ${uses}, probe: {run: ${run}}}]
`;

describe('the placeholders of a probe', () => {
  it('accept serial and source, of the only bundle or of a named one', () => {
    assert.deepEqual(mistakes(text('[a]', '[ask, "{serial} {source}", "{serial:a}"]')), []);
    assert.deepEqual(mistakes(text('[a, b]', '[ask, "{serial:a}/{serial:b}", "{source:b}"]')), []);
  });

  for (const [name, uses, run, message] of [
    ['no bundle, of several', '[a, b]', '[ask, "x{serial}"]', /\{serial\} needs a bundle, as \{serial:a\}/],
    ['a bundle that the group does not use', '[a]', '[ask, "{source:b}"]', /\{source:b\} names a bundle/],
    ['an empty name', '[a]', '[ask, "{source:}"]', /\{source:\} names a bundle/],
  ] as const) {
    it(`may not name ${name}`, () => {
      const found = mistakes(text(uses, run));
      assert.equal(found.length, 1);
      assert.match(found[0] ?? '', message);
    });
  }
});
