import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findGlobProblem } from '../../../../src/core/text/glob-bounds.js';

describe('findGlobProblem', () => {
  const accepted = [
    '*a*a*a*a',
    '**/*-*.yaml',
    '**/zones/**/*.zone',
    'a/*/b/*/c/*/d/*/e/*',
    '{db,rpz}.*.{zone,signed}',
    '+(foo|bar)*.conf',
    '+([0-9]).yaml',
    '\\*\\*\\*\\*\\*\\*',
    '[*****]',
    'c++/a+b',
    'a(b)c',
    '{',
  ];
  for (const glob of accepted) {
    it(`accepts ${glob}`, () => assert.equal(findGlobProblem(glob), undefined));
  }

  const refused: Readonly<Record<string, RegExp>> = {
    '*a*a*a*a*b': /5 stars in one segment; at most 4/,
    'x/*a*a*a*a*b/y': /5 stars in one segment/,
    // Within the bound of each segment, but each match of the first is tried with each of the second.
    '*a*a*a*a/*a*a*a*b': /too many stars/,
    '**/a/**/b/**/c/**/d/**/e': /too many stars/,
    '(a+)+b': /repeats a group/,
    '+(a*)b': /repeats a group/,
    '*(a|ab)c': /repeats a group/,
    '{a,aa}+b': /repeats a group/,
    '!(*a*a*a*a)b': /5 stars in one segment/,
    [`${'{a,aa}'.repeat(13)}b`]: /4096 combinations/,
    [`${'?(a)'.repeat(13)}b`]: /4096 combinations/,
    [`${'(a)?'.repeat(13)}b`]: /4096 combinations/,
    [`${'{a,{b,c}}'.repeat(8)}b`]: /4096 combinations/,
  };
  for (const [glob, why] of Object.entries(refused)) {
    it(`refuses ${glob}`, () => assert.match(findGlobProblem(glob) ?? '', why));
  }
});
