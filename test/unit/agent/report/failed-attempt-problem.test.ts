// The problem of a release that was tried without a verdict, in a status: before its time, after it, and while a pause delays it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { statusReport } from '../../../../src/agent/report/status-report.js';
import { endWaitsThatAreOver, noteFailedAttempt } from '../../../../src/agent/select/waits.js';
import type { Digest } from '../../../../src/core/names.js';
import type { NamedRelease } from '../../../../src/core/release/release.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const minuteMs = 60_000;
const digest = `sha256:${'a'.repeat(64)}` as Digest;
const release: NamedRelease = { bundle: 'access', serial: 3, manifest: { digest } };

function problemTexts({ host }: TestHost): string[] {
  const facts = { version: '0.0.0', state: 'run', problems: [], contact: { contact: {} } } as const;
  const { problems } = statusReport(host, facts);
  return problems.filter(({ code }) => code === 'REFUSAL_REPEATED').map(({ message }) => message);
}

describe('a release that was tried without a verdict', () => {
  for (const [runner, endWait] of [
    ['an agent', ({ host }: TestHost) => assert.equal(endWaitsThatAreOver(host), true)],
    ['no agent', () => undefined],
  ] as const)
    it(`waits until its time, and may be tried again after it, with ${runner}`, async () => {
      using test = testHost();
      const attempt = { code: 'REFUSAL_REPEATED', groups: ['nat'] } as const;
      noteFailedAttempt(test.host, [release], attempt);
      const [before = ''] = problemTexts(test);
      assert.match(
        before,
        /^access 3 waits until 20\d\d-.* UTC: nat: the release before it was refused alike$/,
      );
      await test.clock.advance(minuteMs);
      endWait(test);
      const after = 'access 3 may be tried again: nat: the release before it was refused alike';
      assert.deepEqual(problemTexts(test), [after]);
    });
});
