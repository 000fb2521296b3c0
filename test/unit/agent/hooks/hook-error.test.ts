import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type HookReport, hookError } from '../../../../src/agent/hooks/hook.js';
import type { WritError } from '../../../../src/core/errors.js';

function errorOf(role: 'check' | 'probe', report: Partial<HookReport>): WritError {
  const output = 'curl: (7) connect ECONNREFUSED';
  const whole: HookReport = {
    verdict: { kind: 'refused', reason: 'exit 7' },
    text: output,
    durationMs: 1,
    ...report,
  };
  return hookError(role, whole, { text: () => `gateway: exit 7: ${output}`, facts: {} }) ?? assert.fail();
}

describe('the error of a probe that ran in the sandbox', () => {
  it('hints at the sandbox and how to open it, with the output of the probe', () => {
    const { code, message, hint } = errorOf('probe', { sandboxed: 'without-network' });
    assert.equal(code, 'PROBE_FAILED');
    assert.match(message, /connect ECONNREFUSED/);
    assert.match(hint, /in the sandbox, without network.*`network: true` or `binds`/);
  });

  it('does not mention the network if the probe had one', () => {
    const { hint } = errorOf('probe', { sandboxed: 'with-network' });
    assert.match(hint, /in the sandbox, with an empty \/run: `binds`/);
    assert.doesNotMatch(hint, /without network/);
  });

  it('omits the hint for a hidden path, for a run without a sandbox, and for a check', () => {
    const hidden = 'The sandbox hides /run/a: add it.';
    assert.equal(errorOf('probe', { sandboxed: 'without-network', hint: hidden }).hint, hidden);
    assert.doesNotMatch(errorOf('probe', {}).hint, /sandbox/);
    assert.doesNotMatch(errorOf('check', { sandboxed: 'without-network' }).hint, /sandbox/);
  });
});
