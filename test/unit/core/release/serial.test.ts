import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ledgerSchema } from '../../../../src/agent/state/ledger-schema.js';
import { maxReadSerial, maxSerial, parseSerial } from '../../../../src/core/release/serial.js';
import { validatorOf } from '../../../../src/core/schema/own-schemas.js';

const digest = `sha256:${'ab'.repeat(32)}`;

function ledgerWith(serial: number): object {
  const release = { serial, manifestDigest: digest };
  return {
    writ: 1,
    nextGeneration: 2,
    lastMtimeSeconds: 0,
    accepted: { 'dns-edge stable': [release] },
    channels: {},
    holds: [{ bundle: 'dns-edge', ...release, by: 'a', reason: '', atMs: 0 }],
    workers: {},
    missed: { 'dns-edge': { serial, sinceMs: 0 } },
    spaceNeeded: { 'dns-edge': { serial, unit: 'bytes', needed: 1, atMs: 0 } },
  };
}

describe('a serial', () => {
  it('that a release of Writ 0.1.0 may have is read from a ledger, a time above the latest date is not', () => {
    const isReadable = validatorOf(ledgerSchema);
    for (const serial of [1, maxSerial, 8.64e15 + 1, maxReadSerial])
      assert.ok(isReadable(ledgerWith(serial)));
    assert.equal(isReadable({ ...ledgerWith(1), settled: 8.64e15 + 1 }), false);
  });

  it('is read from a text up to the highest serial that a file may have, and from no other text', () => {
    const texts = ['1', '999999999999999', '1000000000000000', String(maxReadSerial)];
    assert.deepEqual(texts.map(parseSerial), texts.map(Number));
    for (const text of ['', '0', '01', '-1', '1.5', '1e3', ' 1', '9007199254740992', '10000000000000000'])
      assert.equal(parseSerial(text), undefined);
  });
});
