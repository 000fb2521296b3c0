// Faults as rows: what is done to a host with an active policy, and the code and exit code that must come of it.
// Owns the run of a row through a whole cycle in this process; what else must hold is standing-policy's.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cycleAnswer } from '../../../src/cli/host/cycle-command.js';
import type { ErrorCode } from '../../../src/core/errors.js';
import { type TestHost, type TestHostOptions, testHost } from '../host/test-host.js';
import { assertSpeaks, standingPolicy } from './standing-policy.js';

export interface Fault {
  readonly name: string;
  readonly host?: TestHostOptions;
  /** Done after serial 5 has become active as generation 1, and before the pull that is judged. */
  readonly harm: (test: TestHost) => unknown;
  readonly code: ErrorCode;
  readonly exit: 1 | 3 | 8;
  /** A verdict on bytes that were unpacked, which is remembered; what the way or the host did never is. */
  readonly remembered?: 'yes';
}

const wordOfExit = { 1: 'FAILED', 3: 'REJECTED', 8: 'DEFERRED' } as const;

/** One test a row. */
export function faultTable(title: string, faults: readonly Fault[]): void {
  describe(title, () => {
    for (const fault of faults) it(`${fault.code}: ${fault.name}`, () => holdsAgainst(fault));
  });
}

/** A release beside the active one; serial 6 unless told otherwise. */
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
  assertSpeaks([...answer.lines, `Next: ${answer.next}`].join('\n'), {
    word: wordOfExit[fault.exit],
    code: fault.code,
  });
  assert.deepEqual([answer.details['code'], answer.details['changed']], [fault.code, false]);
  const refusals = test.host.refusals.read().refusals.map((one) => one.code);
  assert.deepEqual(refusals, fault.remembered === 'yes' ? [fault.code] : []);
}
