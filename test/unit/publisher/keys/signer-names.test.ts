// Names of people for keys: what can be shown on one line, and is no second spelling of another name.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isSignerName } from '../../../../src/publisher/keys/signer-names.js';

describe('a name of a signer', () => {
  it('has no space at its ends, and no character that hides or reorders others', () => {
    for (const name of ['anna', 'Anna van Dijk']) assert.equal(isSignerName(name), true, name);
    for (const name of ['anna ', ' anna', 'an\u202Ena', '', 7]) assert.equal(isSignerName(name), false);
  });
});
