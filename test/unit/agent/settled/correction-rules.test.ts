import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeBakeGap } from '../../../../src/agent/settled/bake-gap-rules.js';
import { startBake } from '../../../../src/agent/settled/bake-rules.js';
import {
  type CorrectedHost,
  isCorrectionOn,
  passesAsCorrection,
} from '../../../../src/agent/settled/correction-rules.js';
import { withCorrection, withRestored } from '../../../../src/agent/settled/settled-ledger.js';
import { emptyLedger, type Ledger, ledgerSection } from '../../../../src/agent/state/ledger.js';
import type { Digest } from '../../../../src/core/names.js';

const digest = `sha256:${'a'.repeat(64)}` as Digest;
const release = { serial: 4, manifestDigest: digest };
const nothing: CorrectedHost = { refusals: [], active: { serial: 1 } };
const correction = { bundle: 'dns', fixes: 4 };

describe('isCorrectionOn', () => {
  const bakes = { dns: startBake(release, { nowMs: 0, bootId: 'b' }) };
  const unsettled = { dns: { sinceMs: 0, restores: 2, failed: [release] } };
  const cases: readonly (readonly [string, Partial<CorrectedHost>, boolean])[] = [
    ['is active', { active: { serial: 4 } }, true],
    ['bakes', { bakes }, true],
    ['was taken back', { unsettled }, true],
    ['was refused', { refusals: [{ bundle: 'dns', serial: 4 }] }, true],
    ['was never here', {}, false],
    ['is not here while another release is', { active: { serial: 3 } }, false],
    ['was taken back of another bundle', { unsettled: { views: unsettled.dns } }, false],
    ['bakes of another bundle', { bakes: { views: bakes.dns } }, false],
    ['was refused of another bundle', { refusals: [{ bundle: 'views', serial: 4 }] }, false],
  ];
  for (const [what, facts, expected] of cases) {
    it(`is ${expected} if the named release ${what}`, () => {
      assert.equal(isCorrectionOn({ ...nothing, ...facts }, correction), expected);
    });
  }

  it('is false for a release that names none', () => {
    assert.equal(isCorrectionOn({ ...nothing, active: { serial: 4 } }, { bundle: 'dns' }), false);
  });
});

describe('the wait of a correction', () => {
  const nowMs = 10_000_000;
  const forMs = 600_000;
  const waits = (ledger: Pick<Ledger, 'bakes' | 'unsettled'>, isCorrection: boolean): boolean =>
    judgeBakeGap({ bundle: 'dns', serial: 5 }, ledger, { isCorrection, forMs, set: ['dns'], nowMs }) !==
    undefined;
  const failing = { sinceMs: nowMs, restores: 6, restoredAtMs: nowMs, failed: [release] };
  const churning = { sinceMs: nowMs - 4 * forMs, restores: 0, failed: [] };
  const bakes = { dns: startBake(release, { nowMs: nowMs - 1000, bootId: 'b' }) };

  it('is neither the gap after restores nor the running bake', () => {
    const cases: readonly Pick<Ledger, 'bakes' | 'unsettled'>[] = [
      { unsettled: { dns: failing } },
      { unsettled: { dns: churning }, bakes },
    ];
    for (const ledger of cases) assert.deepEqual([waits(ledger, true), waits(ledger, false)], [false, true]);
  });

  it('is that of every release after three corrections', () => {
    for (const [corrections, isWaiting] of [
      [2, false],
      [3, true],
      [4, true],
    ] as const) {
      assert.equal(passesAsCorrection({ corrections }), !isWaiting);
      assert.equal(waits({ unsettled: { dns: { ...failing, corrections } } }, true), isWaiting);
    }
  });
});

describe('withCorrection', () => {
  const change = ledgerSection('unsettled');
  const ledgerWith = (unsettled: NonNullable<Ledger['unsettled']>): Ledger =>
    change(emptyLedger(), { unsettled });
  const failing = { sinceMs: 5, restores: 6, restoredAtMs: 9, failed: [release] };

  it('ends the gap, counts, and keeps the age of the period and the failed releases', () => {
    const ledger = withCorrection(ledgerWith({ dns: failing, views: failing }), 'dns');
    assert.deepEqual(ledger.unsettled, { dns: { ...failing, restores: 0, corrections: 1 }, views: failing });
  });

  it('changes nothing after the third, or if every release has settled', () => {
    const used = { dns: { ...failing, corrections: 3 } };
    assert.deepEqual(withCorrection(ledgerWith(used), 'dns').unsettled, used);
    assert.deepEqual(withCorrection(ledgerWith({}), 'dns').unsettled, {});
  });

  it('is counted further after a restore', () => {
    const ledger = withCorrection(ledgerWith({ dns: failing }), 'dns');
    const restored = withRestored(ledger, [{ bundle: 'dns', serial: 5, manifestDigest: digest }], 10);
    assert.deepEqual(
      [restored.unsettled?.['dns']?.corrections, restored.unsettled?.['dns']?.restores],
      [1, 1],
    );
  });
});
