// The translation of driver errors: by code, by text where a driver gives no code; and the errors after which a retry may succeed.
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

describe('an error of PostgreSQL that its setup causes', () => {
  it('has a hint for a password, a user, a database and a permission', () => {
    const table = [
      ['28P01', 'password authentication failed for user "writ"', /wrong password, or none/],
      ['', 'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string', /wrong password, or none/],
      ['28000', 'no pg_hba.conf entry', /pg_hba\.conf/],
      ['3D000', 'database "writ" does not exist', /createdb/],
      ['42501', 'permission denied for schema public', /owner of the database/],
    ] as const;
    for (const [code, message, hint] of table) {
      const error = asStoreError(Object.assign(new Error(message), { code }));
      assert.equal(error.code, 'FLEET_STORE_FAILED');
      assert.match(error.hint, hint, code);
    }
    assert.match(asStoreError(Object.assign(new Error('x'), { code: '22000' })).hint, /missing permissions/);
  });
});
