import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ErrorCode, errorCodes } from '../../../src/core/error-codes.js';
import { errorPage } from '../../../src/core/error-docs.js';
import { docsOf } from '../../../src/core/errors.js';

describe('the page of an error code', () => {
  it('names the command that prints the page of the code', () => {
    assert.equal(docsOf('DOWNLOAD_DIGEST'), 'writ help DOWNLOAD_DIGEST');
  });

  it('has a specific effect, by the step of the cycle in which the error occurs', () => {
    const effectOf = (code: ErrorCode): string => errorPage(code).effect;
    assert.match(effectOf('CHECK_FAILED'), /stays unchanged\. The release is remembered as refused/);
    assert.match(
      effectOf('CHECK_BROKEN'),
      /stays unchanged: .* before the swap\. .* not remembered as refused/,
    );
    assert.match(
      effectOf('LOADER_BROKEN'),
      /previous generation is active again .* not remembered as refused/,
    );
    assert.equal(effectOf('FLEET_KEY_RETIRED'), 'None: policy does not depend on the fleet server.');
    assert.match(effectOf('KEYS_MISSING'), /^None: nothing was published/);
    assert.equal(errorPage('WORKER_REFUSED').kind, 'rolled-back');
  });

  it('names the previous generation only for errors that may come after the swap', () => {
    const codes = Object.keys(errorCodes) as ErrorCode[];
    const restoring = codes.filter((code) => /previous generation is active/.test(errorPage(code).effect));
    assert.deepEqual(restoring.sort(), [
      'DISK_DENIED',
      'DISK_FAILED',
      'DISK_FULL',
      'DISK_QUOTA',
      'DISK_READ_ONLY',
      'LOADER_BROKEN',
      'LOADER_DEFERRED',
      'LOADER_FAILED',
      'PROBE_BROKEN',
      'PROBE_FAILED',
      'REFUSAL_REPEATED',
      'SANDBOX_BROKEN',
      'SANDBOX_MISSING',
      'SILENT_REFUSAL',
      'TOO_MANY_FILES',
      'WORKER_DIED',
      'WORKER_REFUSED',
    ]);
  });

  it('has both exit codes of an error that restores a generation and delays the release', () => {
    const text = 'exit code 5 of the pull that tried the release, 4 while it waits';
    assert.deepEqual([errorPage('SILENT_REFUSAL').exit, errorPage('REFUSAL_REPEATED').exit], [text, text]);
  });

  it('has no exit code for a code that is always a warning', () => {
    assert.equal(errorPage('WORKER_REFUSED').exit, 'exit code 5');
    assert.match(errorPage('STATE_REBUILT').exit, /always a warning/);
  });
});
