// A host with an active policy that somebody attacks: it pulls, and is held to what every attack must leave behind,
// the policy as it was to the byte. Owns the host and that promise; the attack and the code are the test's.
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
  /** Publishes a release of the bundle `access` whose one file says its serial; signed by who signs at that time. */
  release(serial: number): Promise<Buffer>;
  /** Pulls; the policy and its serial must be as before, and the status as `expected` says. */
  resists(expected: Resistance): Promise<CycleResult>;
  /** Pulls; this serial must be active afterwards, and all be well. */
  follows(serial: number): Promise<void>;
  status(): StatusReport;
  /** Bytes of a file in the trust store. */
  trusted(name: string): Buffer;
}

export interface AttackedHostOptions extends Omit<TestHostOptions, 'mirrors'> {
  /** In place of the repository itself; each release is uploaded to all of them. */
  readonly mirrors?: readonly SimulatedMirror[];
}

export interface Resistance {
  /** First in the result, and told by the status; left out where the pull has nothing to complain of. */
  readonly code?: ErrorCode;
  /** `fresh` by default where there is no code, else `refused`. */
  readonly freshness?: Freshness;
  /** Files of the trust store that must be as before the pull. */
  readonly keeps?: readonly string[];
}

/** @example using host = await attackedHost(); host.repository.serve(...); await host.resists({ code: ... }); */
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
      // An attack is never the bundle's fault: a memory of it would block the honest release.
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
