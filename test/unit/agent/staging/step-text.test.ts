import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkStep } from '../../../../src/agent/checks/check-candidate.js';
import type { BundleCheckReport } from '../../../../src/agent/checks/run-checks.js';
import { countText } from '../../../../src/agent/staging/step-text.js';

function report(name: string, kind: BundleCheckReport['verdict']['kind'], text = ''): BundleCheckReport {
  return { bundle: 'dns-edge', name, verdict: { kind, reason: 'exit 1' }, text, durationMs: 1 };
}

describe('the texts of a step', () => {
  it('count in singular and plural', () => {
    assert.deepEqual(
      [countText(0, 'file'), countText(1, 'file'), countText(2, 'file')],
      ['0 files', '1 file', '2 files'],
    );
  });

  it('put the check that refused first, with what it printed', () => {
    const checks = [report('names', 'ok', 'said much'), report('zones', 'refused', 'block.rpz:7: bad\n\n')];
    assert.deepEqual(checkStep(checks, 'fail'), {
      text: 'dns-edge: zones: FAIL (exit 1)\nblock.rpz:7: bad\ndns-edge: names: ok',
      verdict: 'fail',
    });
  });

  it('never call a refusal a warning, whatever else warned or was printed', () => {
    const warned = report('ages', 'warned');
    assert.equal(checkStep([warned, report('zones', 'refused')], 'fail').verdict, 'fail');
    assert.equal(checkStep([warned], 'ok').verdict, 'warn');
    assert.equal(checkStep([report('zones', 'ok', 'x: warn')], 'ok').verdict, 'ok');
    assert.equal(checkStep([], 'ok').verdict, 'skip');
  });

  it('show five lines of what a check printed, the last one among them, and how many are left out', () => {
    const long = report('zones', 'refused', Array.from({ length: 500 }, (_, n) => `line ${n}`).join('\n'));
    const { text } = checkStep([long], 'fail');
    assert.deepEqual(
      [text.split('\n').length, text.includes('(495 more lines)'), text.endsWith('line 499')],
      [7, true, true],
    );
  });
});
