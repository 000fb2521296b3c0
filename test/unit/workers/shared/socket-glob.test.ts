import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pathGlobPattern } from '../../../../src/workers/shared/socket-set.js';

const isTaken = (path: string): boolean => new RegExp(pathGlobPattern, 'u').test(path);

describe('a path or glob of sockets', () => {
  for (const path of [
    '/run/a.sock',
    '/run/*.sock',
    '/run/a*',
    '/run/*',
    '/run/**',
    '/a*b*c*d*',
    '/run/{a,b}.ctl',
    '/a+b',
  ])
    it(`may be ${path}`, () => assert.ok(isTaken(path)));

  for (const path of [
    '/a*b*c*d*e*',
    '/a*b*c*d*e*f',
    '/run/(a+)+b',
    '/run/+(a|aa)',
    '/run/*(a|aa)',
    '/*/a',
    '/run/',
    'a',
  ])
    it(`may not be ${path}`, () => assert.equal(isTaken(path), false));
});
