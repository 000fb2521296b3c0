// The error type: the members that a code determines, the members in JSON, and the conversion of unknown errors.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ErrorCode, errorCodes } from '../../../src/core/error-codes.js';
import {
  exitCodeOfKind,
  isSystemError,
  isWritError,
  toWritError,
  WritError,
} from '../../../src/core/errors.js';

const codes = Object.keys(errorCodes) as ErrorCode[];

describe('the catalogue of errors', () => {
  it('has codes in capitals, and texts that are sentences', () => {
    for (const code of codes) {
      assert.match(code, /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/);
      assert.match(errorCodes[code].meaning, /^[A-Z`].*\.$/, code);
      assert.notEqual(errorCodes[code].hint, '', code);
    }
  });

  it('has no sentence twice', () => {
    const meanings = codes.map((code) => errorCodes[code].meaning);
    assert.equal(new Set(meanings).size, meanings.length);
  });

  it('gives each kind its exit code, none of them success', () => {
    assert.deepEqual(exitCodeOfKind, {
      failed: 1,
      usage: 2,
      config: 2,
      rejected: 3,
      degraded: 4,
      'rolled-back': 5,
      blocked: 6,
      busy: 7,
      deferred: 8,
    });
  });
});

describe('WritError', () => {
  it('takes kind and hint from the catalogue', () => {
    const error = new WritError('DISK_FULL', 'no space for archive');
    assert.equal(error.kind, 'failed');
    assert.equal(error.hint, errorCodes.DISK_FULL.hint);
    assert.deepEqual(error.facts, {});
    assert.equal(error.name, 'WritError');
    assert.equal('cause' in error, false);
  });

  it('prefers a specific hint to that of the catalogue', () => {
    assert.equal(new WritError('DISK_FULL', 'm', { hint: 'Free 3 MB on /var.' }).hint, 'Free 3 MB on /var.');
  });

  it('becomes JSON without stack and cause', () => {
    const cause = new Error('secret of the system');
    const error = new WritError('MANIFEST_MISMATCH', 'm', { facts: { expected: 1, actual: 2 }, cause });
    assert.deepEqual(JSON.parse(JSON.stringify(error)), {
      code: 'MANIFEST_MISMATCH',
      kind: 'rejected',
      message: 'm',
      hint: errorCodes.MANIFEST_MISMATCH.hint,
      facts: { expected: 1, actual: 2 },
    });
    assert.equal(error.cause, cause);
  });
});

describe('the classification of errors', () => {
  it('recognizes a WritError', () => {
    assert.equal(isWritError(new WritError('USAGE', 'm')), true);
    assert.equal(isWritError({ code: 'USAGE' }), false);
  });

  it('recognizes the error of a system call, and its code', () => {
    const missing = Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
    assert.equal(isSystemError(missing), true);
    assert.equal(isSystemError(missing, 'ENOENT'), true);
    assert.equal(isSystemError(missing, 'EACCES'), false);
    assert.equal(isSystemError(new Error('plain')), false);
    assert.equal(isSystemError('ENOENT'), false);
  });

  it('returns a WritError unchanged', () => {
    const error = new WritError('USAGE', 'm');
    assert.equal(toWritError(error), error);
  });

  it('converts an unknown error to INTERNAL with its cause', () => {
    const bug = new TypeError('x is not a function');
    const error = toWritError(bug);
    assert.equal(error.code, 'INTERNAL');
    assert.equal(error.cause, bug);
    assert.equal(toWritError('a string').message, 'a string');
  });

  it('names the module that cannot be loaded', async () => {
    const name = './none-such.js';
    const cause = await import(name).catch((error: unknown) => error);
    const error = toWritError(cause);
    assert.deepEqual([error.code, error.cause], ['PROGRAM_REPLACED', cause]);
    assert.match(String(error.facts['missing']), /^Cannot find module .*none-such\.js/);
  });

  it('names the package to install for a missing module of the fleet server', () => {
    for (const [missing, text] of [
      ['fastify', "Cannot find package 'fastify' imported from /usr/lib/writ/dist/writ/fleet-serve.js"],
      ['kysely', "Cannot find package 'kysely/helpers' imported from /x.js"],
      ['@libsql/linux-x64-gnu', "Cannot find module '@libsql/linux-x64-gnu'\nRequire stack:\n- /x.js"],
    ] as const) {
      const cause = Object.assign(new Error(text), { code: 'MODULE_NOT_FOUND' });
      const error = toWritError(cause);
      assert.deepEqual([error.code, error.kind], ['PACKAGE_MISSING', 'usage']);
      assert.deepEqual(error.facts, { package: 'writ-fleet', missing });
      assert.match(`${error.message} ${error.hint}`, /needs the package writ-fleet.*apt install writ-fleet/);
    }
    const other = Object.assign(new Error("Cannot find package 'pino' imported from /x.js"), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
    assert.equal(toWritError(other).code, 'PROGRAM_REPLACED');
  });
});
