import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type DoctorFinding, type DoctorState, diagnose } from '../../../../src/core/status/doctor.js';

const finding = (state: DoctorState): DoctorFinding => ({ check: 'state', state, text: 'text' });

describe('the diagnosis', () => {
  it('has the outcome of the worst finding and the counts', () => {
    assert.deepEqual(diagnose(['ok', 'skip'].map((one) => finding(one as DoctorState))), {
      outcome: 'ok',
      exitCode: 0,
      failures: 0,
      warnings: 0,
    });
    assert.equal(diagnose([finding('ok'), finding('warn')]).exitCode, 1);
    assert.deepEqual(diagnose([finding('FAIL'), finding('warn'), finding('warn')]), {
      outcome: 'failure',
      exitCode: 2,
      failures: 1,
      warnings: 2,
    });
  });
});
