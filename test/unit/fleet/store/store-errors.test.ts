// What an error of a database driver means: by its code, by its text where it has none, and whether a retry may pass.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { asStoreError, hasWaited, storeError } from '../../../../src/fleet/store/store-errors.js';

describe('an error of a database driver', () => {
  it('has the meaning of its code, and of its text where it has none', () => {
    const of = (error: unknown): unknown[] => {
      const { code, message, facts } = asStoreError(error);
      return [code, message, facts['actual']];
    };
    assert.deepEqual(of({ code: '40001', message: 'timeout' }), ['FLEET_STORE_BUSY', 'timeout', '40001']);
    assert.deepEqual(of({ code: '', message: 'timeout' }), ['FLEET_STORE_UNREACHABLE', 'timeout', 'CLOSED']);
    assert.deepEqual(of({ code: 7, message: 'it' }), ['FLEET_STORE_FAILED', 'it', '']);
    assert.equal(of(new Error(''))[1], 'Error');
    assert.equal(of({ message: 7, toString: () => 'text' })[1], 'text');
  });

  it('has waited only where the embedded store was locked', () => {
    assert.equal(hasWaited(storeError('SQLITE_BUSY_SNAPSHOT', '')), true);
    assert.equal(hasWaited(storeError('SQLITE_LOCKED', '')), false);
    assert.equal(hasWaited(storeError('40001', '')), false);
    assert.equal(hasWaited(new Error('SQLITE_BUSY')), false);
  });
});
