// A table of faults: an action on a host with an active policy, and the expected code and exit code. Each row is one cycle in
// this process; standing-policy.ts asserts that the policy is unchanged.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cycleAnswer } from '../../../src/cli/host/cycle-command.js';
import type { ErrorCode } from '../../../src/core/errors.js';
import { type TestHost, type TestHostOptions, testHost } from '../host/test-host.js';
import { assertFailureText, standingPolicy } from './standing-policy.js';

export interface Fault {
  readonly name: string;
  readonly host?: TestHostOptions;
  /** Called after serial 5 is active as generation 1, before the asserted pull. */
  readonly harm: (test: TestHost) => unknown;
  readonly code: ErrorCode;
  readonly exit: 1 | 3 | 8;
  /** A verdict on unpacked bytes is remembered; a fault of the network or the host is not. */
  readonly isRemembered?: true;
}

const outcomeOfExit = { 1: 'FAILED', 3: 'REJECTED', 8: 'DEFERRED' } as const;

/** Defines a test for each row. */
export function faultTable(title: string, faults: readonly Fault[]): void {
  describe(title, () => {
    for (const fault of faults) it(`${fault.code}: ${fault.name}`, () => holdsAgainst(fault));
  });
}

/** Publishes a release of `access`; it does not pull. @returns the archive */
export function publishNext(test: TestHost, serial = 6): Promise<Buffer> {
  return test.publish('access', { 'policy.yaml': `version: ${serial}\n` }, { serial });
}

async function holdsAgainst(fault: Fault): Promise<void> {
  using test = testHost(fault.host);
  await publishNext(test, 5);
  assert.equal((await test.pull()).outcome, 'activated');
  await fault.harm(test);
  const stands = standingPolicy(test.host.paths);

  const result = await test.pull();
  assert.equal(result.problems[0]?.code, fault.code, result.problems[0]?.message);
  assert.deepEqual([result.exitCode, result.changed], [fault.exit, false]);
  stands();
  const answer = cycleAnswer(result);
  assertFailureText([...answer.lines, `Next: ${answer.next}`].join('\n'), {
    outcome: outcomeOfExit[fault.exit],
    code: fault.code,
  });
  assert.deepEqual([answer.details['code'], answer.details['changed']], [fault.code, false]);
  const refusals = test.host.refusals.read().refusals.map((one) => one.code);
  assert.deepEqual(refusals, fault.isRemembered === true ? [fault.code] : []);
}
