import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorPage } from '../../../src/core/error-docs.js';
import { docsOf } from '../../../src/core/errors.js';

describe('what is documented of a code', () => {
  it('is printed by a command of its own', () => {
    assert.equal(docsOf('DOWNLOAD_DIGEST'), 'writ help DOWNLOAD_DIGEST');
  });

  it('has the effect of its kind, or its own where that differs', () => {
    assert.match(errorPage('CHECK_FAILED').effect, /stays unchanged\. The release is remembered as refused/);
    assert.match(errorPage('LOADER_BROKEN').effect, /not remembered as refused/);
    assert.equal(errorPage('WORKER_REFUSED').kind, 'rolled-back');
  });

  it('gives no exit code to what is always a warning', () => {
    assert.equal(errorPage('WORKER_REFUSED').exit, 'exit code 5');
    assert.match(errorPage('STATE_REBUILT').exit, /always a warning/);
  });
});
