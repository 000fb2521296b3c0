// A host with an active policy, for tests of attacks. After each attack it asserts that the policy is byte for byte unchanged.
// The test makes the attack and names the expected code.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { keepContact } from '../../../src/agent/freshness/contact-memory.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { ErrorCode } from '../../../src/core/error-codes.js';
import type { StatusReport } from '../../../src/core/protocol/control-protocol.js';
import type { Freshness } from '../../../src/core/status/freshness.js';
import { standingPolicy } from '../assert/standing-policy.js';
import type { RepositorySimulator } from '../repository/repository-simulator.js';
import { type SimulatedMirror, upload } from '../repository/simulated-mirror.js';
import { type TestHost, type TestHostOptions, testHost } from './test-host.js';

export interface AttackedHost extends Disposable {
  readonly test: TestHost;
  readonly repository: RepositorySimulator;
  /**
   * Publishes a release of the bundle `access`, signed with the current keys of the repository.
   * @returns the archive; its file `policy.yaml` holds the serial
   */
  release(serial: number): Promise<Buffer>;
  /** Pulls. Asserts that the policy and its serial are unchanged, and that the status matches `expected`. */
  resists(expected: Resistance): Promise<CycleResult>;
  /** Pulls. Asserts that this serial is active and that the host is fresh. */
  follows(serial: number): Promise<void>;
  status(): StatusReport;
  /** @returns the bytes of a file in the trust store; throws ENOENT if it is missing */
  trusted(name: string): Buffer;
}

export interface AttackedHostOptions extends Omit<TestHostOptions, 'mirrors'> {
  /** They replace the simulator as sources; each release is uploaded to all of them. */
  readonly mirrors?: readonly SimulatedMirror[];
}

export interface Resistance {
  /** The first problem of the result and of the status. Undefined: neither has a problem. */
  readonly code?: ErrorCode;
  /** `fresh` by default without a code, otherwise `refused`. */
  readonly freshness?: Freshness;
  /** Names of files in the trust store that the pull must not change. */
  readonly keeps?: readonly string[];
}

/**
 * @returns a host that follows serial 5 of `access`
 * @throws AssertionError if the first pull fails
 * @example using host = await attackedHost(); host.repository.serve(...); await host.resists({ code: ... });
 */
export async function attackedHost({
  mirrors = [],
  ...options
}: AttackedHostOptions = {}): Promise<AttackedHost> {
  const test = testHost({ ...options, ...(mirrors.length === 0 ? {} : { mirrors }) });
  const { host, repository } = test;
  const contact = keepContact(undefined, test.clock);
  let last: CycleResult | undefined;
  let serialNow = 0;

  const pull = async (): Promise<CycleResult> => {
    const end = await test.sync();
    contact.note(end.refresh);
    last = end.result;
    return end.result;
  };
  const status = (): StatusReport =>
    statusReport(host, {
      version: '9.9.9',
      state: 'run',
      ...(last === undefined ? {} : { last }),
      contact: contact.read(),
      problems: [],
    });
  const attacked: AttackedHost = {
    test,
    repository,
    status,
    trusted: (name) => readFileSync(join(host.paths.trust, name)),
    release: async (serial) => {
      const archive = await test.publish('access', { 'policy.yaml': policyOf(serial) }, { serial });
      upload(repository.files, mirrors);
      return archive;
    },
    resists: async ({ code, freshness = code === undefined ? 'fresh' : 'refused', keeps = [] }) => {
      const stands = standingPolicy(host.paths);
      const before = keeps.map((name) => attacked.trusted(name));
      const result = await pull();
      assert.equal(result.problems[0]?.code, code, result.problems[0]?.message);
      assert.deepEqual(
        [result.outcome, result.changed],
        [code === undefined ? 'unchanged' : 'failed', false],
      );
      stands();
      assert.equal(test.read('access/policy.yaml'), policyOf(serialNow));
      assert.deepEqual(
        keeps.map((name) => attacked.trusted(name)),
        before,
      );
      const { freshness: notified, problems } = status();
      assert.equal(notified.state, freshness);
      assert.equal(problems[0]?.code, code);
      // An attack causes no refusal: a remembered refusal would block the authentic release.
      assert.deepEqual(host.refusals.read().refusals, []);
      return result;
    },
    follows: async (serial) => {
      const { outcome, problems } = await pull();
      assert.equal(outcome, 'activated', problems[0]?.message);
      assert.equal(test.read('access/policy.yaml'), policyOf(serial));
      const { freshness, bundles } = status();
      assert.deepEqual([freshness.state, bundles[0]?.serial], ['fresh', serial]);
      serialNow = serial;
    },
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
  await attacked.release(5);
  await attacked.follows(5);
  repository.takeRequests();
  return attacked;
}

function policyOf(serial: number): string {
  return `version: ${serial}\n`;
}
