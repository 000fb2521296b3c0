// Plants a secret in each text of a status, one after the other: the report contains none of them. The type of
// the status lists the texts: a new member does not compile here until this test plants a secret in it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type BundleUser,
  type HostIdentity,
  makeReport,
  type ReportFacts,
  reportFingerprint,
} from '../../../../src/agent/fleet/make-report.js';
import type { FleetReport } from '../../../../src/core/fleet/report.js';
import type { StatusReport } from '../../../../src/core/status/status.js';

/** Each member is required, and each list has an entry, at every level. */
type Full<T> = T extends readonly (infer Item)[]
  ? readonly [Full<Item>, ...Full<Item>[]]
  : T extends object
    ? { readonly [K in keyof T]-?: Full<Exclude<T[K], undefined>> }
    : T;

const atMs = 1_793_500_000_000;
const attempts = { code: 'SERVER_ERROR', role: 'timestamp', sinceMs: 1, atMs: 2, times: 3 } as const;
const problem = (code: 'CHECK_FAILED' | 'FLEET_UNREACHABLE') => ({
  ...{ code, message: 'a message', hint: 'a hint' },
  facts: { bundle: 'access', serial: 7, path: '/a/path' },
});

const bake: Full<NonNullable<StatusReport['bundles'][number]['bake']>> = {
  state: 'baking',
  leftMs: 1,
  forMs: 2,
  untaken: true,
  untakenSinceMs: atMs,
  waitsFor: { what: 'worker', of: ['dns'] },
  atMs,
  observed: true,
  cause: 'WORKER_DIED',
  text: 'a text',
  ends: [{ worker: 'dns/kresd@1', abnormal: 1, unexplained: 1 }],
};

const full: Full<StatusReport> = {
  schema: 1,
  downloading: { doneBytes: 1, totalBytes: 2 },
  type: 'status.result',
  version: '0.1.0',
  host: 'edge-1',
  labels: { site: 'fra' },
  atMs,
  agent: 'run',
  last: { cycle: 'c-1', trigger: 'poll', outcome: 'rejected', atMs },
  confirmed: true,
  generation: 3,
  activatedAtMs: atMs,
  bundles: [
    {
      ...{ bundle: 'dns-edge', channel: 'stable', serial: 41, revision: 'r41', activatedAtMs: atMs, bake },
      server: { serial: 42, revision: 'r42', requires: ['something'], fixes: 1 },
      withdrawnBy: 42,
      missed: {
        serial: 42,
        sinceMs: atMs,
        code: 'SERVER_ERROR',
        url: 'https://edge.example/42',
        state: 'stale',
      },
    },
    {
      ...{ bundle: 'access', channel: 'stable', serial: 6, revision: 'r6', activatedAtMs: atMs, bake },
      server: { serial: 7, revision: 'r7', requires: ['something'], fixes: 1 },
      withdrawnBy: 7,
      missed: {
        serial: 7,
        sinceMs: atMs,
        code: 'SERVER_ERROR',
        url: 'https://edge.example/7',
        state: 'stale',
      },
    },
  ],
  workers: [
    {
      ...{ group: 'dns', worker: 'kresd@1', wanted: 3, confirmed: 3, notified: 3, state: 'confirmed' },
      ...{ text: 'a worker said', atMs, notificationId: 'c-1.1', notifiedAtMs: atMs, provenAtMs: atMs },
      ...{ tries: 1, nextNotificationAtMs: atMs, goneAtMs: atMs, code: 'PROCESS_UNKNOWN', observed: false },
    },
  ],
  groups: [
    {
      ...{ group: 'dns', workers: 1, confirmed: 1, min: 1 },
      findings: [{ level: 'warning', code: 'WORKER_UNCONFIRMED', text: 'a finding' }],
    },
  ],
  freshness: {
    ...{
      state: 'fresh',
      lastContactAtMs: atMs,
      verifiedAtMs: atMs,
      sinceMs: atMs,
      ageMs: 1,
      overdueSinceMs: atMs,
    },
    ...{
      failing: attempts,
      refused: attempts,
      expired: { role: 'timestamp', version: 1, expiresAtMs: atMs },
    },
  },
  clock: { floorMs: atMs, behindMs: 1 },
  nextPollAtMs: atMs,
  mirrors: [{ url: 'https://mirror/', state: 'failed', code: 'SERVER_ERROR', sinceMs: atMs }],
  trust: [{ role: 'root', version: 2, expiresAtMs: atMs + 5e9, signedAtMs: atMs }],
  untrusted: [{ bundle: 'old', serial: 1, generation: 1, active: false, reason: 'a reason' }],
  held: [
    {
      ...{ generation: 1, bundle: 'old', what: 'mount', path: '/mnt', pid: 1, command: 'sh', sinceMs: atMs },
    },
  ],
  scrub: {
    ...{ atMs, outcome: 'intact', found: 0, counts: { looks: 1, damaged: 0, repaired: 0, failed: 0 } },
    damage: [{ generation: 1, part: 'tree', kind: 'changed', bundle: 'old', tree: 't', path: 'a/b' }],
  },
  sandbox: {
    ...{
      mode: 'auto',
      state: 'on',
      reason: 'a reason',
      withoutIt: 'refused',
      hint: 'a hint',
      user: 'nobody',
      userNamespace: 'yes',
    },
    ...{ memory: 'each-process', processes: 'each-command', systemCalls: 'filtered' },
  },
  refusals: [
    {
      ...{ bundle: 'dns-edge', channel: 'stable', serial: 42, code: 'CHECK_FAILED', atMs, retryAtMs: atMs },
      reason: 'the first line\nthe second line',
    },
  ],
  olderRefusals: 1,
  holds: [{ bundle: 'old', serial: 1, by: 'anna', atMs, reason: 'a reason' }],
  pause: { by: 'anna', reason: 'a reason', atMs, untilMs: atMs },
  waiting: [{ bundle: 'old', serial: 1, groups: ['dns'], untilMs: atMs }],
  fleet: {
    ...{
      url: 'https://fleet/',
      state: 'reporting',
      keyId: 'k',
      acknowledgedAtMs: atMs,
      everyMs: 1,
      pending: 0,
    },
    problem: problem('FLEET_UNREACHABLE'),
  },
  proxies: [
    { url: 'https://policy.test/', proxy: 'http://proxy.test:3128', from: 'HTTPS_PROXY', why: 'none' },
  ],
  logLosses: { lines: 1, code: 'ENOSPC' },
  observation: { untilMs: atMs, bundles: ['dns-edge'] },
  problems: [problem('CHECK_FAILED')],
};

const identity: HostIdentity = { installId: 'abc', bootId: 'boot', host: 'edge-1', labels: { site: 'fra' } };
const dns = (uses: readonly string[], proof: BundleUser['proof'] = 'can confirm'): BundleUser => ({
  ...{ group: 'dns', uses, proof },
});
const facts = (more: Partial<ReportFacts> = {}): ReportFacts => ({
  sender: 'agent',
  ...{ identity, everyMs: 300_000, detail: 'codes', rootDigest: 'd'.repeat(64) },
  manifests: new Map([
    ['dns-edge', 'a'.repeat(64)],
    ['access', 'b'.repeat(64)],
  ]),
  users: [dns(['dns-edge', 'access'])],
  outcomes: [],
  dropped: 0,
  ...more,
});

/** @returns the path of every text in it */
function textsIn(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value === 'string') return [path];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => textsIn(inner, [...path, key]));
}

function planted(path: readonly (string | number)[], text: string): StatusReport {
  const copy = structuredClone(full) as unknown as Record<string | number, unknown>;
  const last = path.at(-1) ?? '';
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((at, key) => (at as Record<string | number, unknown>)[key], copy);
  (parent as Record<string | number, unknown>)[last] = text;
  return copy as unknown as StatusReport;
}

const secret = 'pAsSwOrD of /etc/shadow\npAsSwOrD of the first line of a check\nsecond line: tOkEn';
const withoutPause = ({ pause: _, ...status }: StatusReport): StatusReport => status;

const withoutMissed = (status: StatusReport): StatusReport => ({
  ...status,
  bundles: status.bundles.map(({ missed: _, ...one }) => one),
});

function offeredOf(report: FleetReport, bundle = 'dns-edge') {
  return report.bundles.find((one) => one.bundle === bundle)?.offered;
}

describe('a report', () => {
  it('contains no text of the status except names and codes', () => {
    const paths = textsIn(full);
    assert.ok(paths.length > 70, `${paths.length} texts`);
    for (const path of paths) {
      const report = JSON.stringify(makeReport(planted(path, secret), facts()));
      assert.doesNotMatch(report, /pAsSwOrD|shadow|tOkEn/, path.join('.'));
    }
  });

  it('contains with detail: line one bounded line with the reason of an inactive release, and no other text', () => {
    const long = secret.replaceAll('\n', `${'x'.repeat(300)}\n`);
    const telling = textsIn(full).filter((path) => {
      const text = JSON.stringify(makeReport(planted(path, long), facts({ detail: 'line' })));
      assert.doesNotMatch(text, /tOkEn/, path.join('.'));
      return text.includes('pAsSwOrD');
    });
    assert.deepEqual(telling, [['refusals', '0', 'reason']]);
    const line = offeredOf(
      makeReport(planted(['refusals', 0, 'reason'], long), facts({ detail: 'line' })),
    )?.line;
    assert.equal(line?.length, 200);
  });

  it('contains the first line of the check, or the message of Writ if the check wrote none', () => {
    const lineOf = (reason: string) =>
      offeredOf(makeReport(planted(['refusals', 0, 'reason'], reason), facts({ detail: 'line' })))?.line;
    assert.equal(lineOf('the check refuses the candidate\n \nblock.rpz:6: bad\nmore'), 'block.rpz:6: bad');
    assert.equal(lineOf('the check refuses the candidate\n'), 'the check refuses the candidate');
  });

  it('contains with detail: full also the bounded output, and the problem of each bundle in the last cycle', () => {
    const reason = `first\n${'é'.repeat(4000)}`;
    const report = makeReport(planted(['refusals', 0, 'reason'], reason), facts({ detail: 'full' }));
    const { line, output = '' } = offeredOf(report) ?? {};
    assert.equal(line, 'é'.repeat(200));
    assert.ok(Buffer.byteLength(output) <= 4096 && output.endsWith('é'));
    const other = makeReport(withoutPause(withoutMissed(full)), facts({ detail: 'line' }));
    assert.deepEqual(offeredOf(other, 'access'), {
      ...{ serial: 7, state: 'refused', code: 'CHECK_FAILED', atMs, line: 'a message' },
    });
  });

  it('contains a digest in place of the boot id, and no problem of the fleet itself', () => {
    const boot = 'a-boot-id-of-this-kernel';
    const report = makeReport(
      { ...full, problems: [problem('FLEET_UNREACHABLE')] },
      facts({ identity: { ...identity, bootId: boot } }),
    );
    assert.match(report.bootId, /^[0-9a-f]{64}$/);
    assert.ok(!JSON.stringify(report).includes(boot));
    assert.ok(!report.findings.some((code) => code.startsWith('FLEET_')));
  });

  const states = (status: StatusReport, more: Partial<ReportFacts> = {}) =>
    makeReport(status, facts(more)).bundles.map(({ active }) => active?.state);

  it('reports confirmed only if the host does and a worker of the bundle can confirm', () => {
    assert.deepEqual(states(full), ['confirmed', 'confirmed']);
    assert.deepEqual(states({ ...full, confirmed: false }), ['unconfirmed', 'unconfirmed']);
    assert.deepEqual(states(full, { users: [] }), ['notified', 'notified']);
    assert.deepEqual(states(full, { users: [dns(['access'])] }), ['notified', 'confirmed']);
  });

  it('reports notified for workers that cannot confirm after each was reached, and unconfirmed before', () => {
    const [planted] = full.workers;
    assert.ok(planted !== undefined);
    const { goneAtMs: _, ...one } = planted;
    const cannot = { users: [dns(['dns-edge', 'access'], 'none')] };
    const withWorker = (more: Partial<StatusReport['workers'][number]>): StatusReport => ({
      ...{ ...full, confirmed: false },
      groups: [{ ...full.groups[0], group: 'dns', workers: 1, confirmed: 0, min: 1, findings: [] }],
      workers: [{ ...one, group: 'dns', wanted: 4, notified: 4, state: 'notified', ...more }],
    });
    const stateWith = (more: Partial<StatusReport['workers'][number]>) => states(withWorker(more), cannot)[0];
    assert.equal(stateWith({}), 'notified');
    assert.equal(stateWith({ notified: 3 }), 'unconfirmed');
    for (const state of ['unreachable', 'pending', 'refused'] as const)
      assert.equal(stateWith({ state }), 'unconfirmed', state);
  });

  it('reports notified without workers if none is required, and unconfirmed if one is missing', () => {
    const [group] = full.groups;
    const empty = (min: number): StatusReport => ({
      ...{ ...full, confirmed: false },
      groups: [{ ...group, workers: 0, confirmed: 0, min }],
    });
    assert.deepEqual(states(empty(0)), ['notified', 'notified']);
    assert.deepEqual(states(empty(1)), ['unconfirmed', 'unconfirmed']);
  });

  it('reports why an offered release is not active: a refusal, then a decision of an operator, then the last cycle', () => {
    const one = (status: StatusReport) => {
      const { state, code } = offeredOf(makeReport(status, facts())) ?? {};
      return [state, code];
    };
    const { refusals: _, ...others } = full;
    const [refusal] = full.refusals;
    const { bundles } = withoutMissed(full);
    const { pause, ...unpaused } = { ...others, refusals: [], problems: [], bundles };
    const hold = { bundle: 'dns-edge', serial: 42, by: 'anna', atMs };
    assert.deepEqual(one(full), ['refused', 'CHECK_FAILED']);
    assert.deepEqual(one({ ...full, refusals: [{ ...refusal, code: 'PROBE_FAILED' }] }), [
      'rolled-back',
      'PROBE_FAILED',
    ]);
    assert.deepEqual(one({ ...unpaused, pause, holds: [hold] }), ['deferred', 'RELEASE_HELD']);
    assert.deepEqual(one({ ...unpaused, pause }), ['deferred', 'ACTIVATION_PAUSED']);
    assert.deepEqual(one({ ...unpaused, waiting: [{ ...hold, groups: ['dns'], untilMs: 1 }] }), [
      'deferred',
      'ACTIVATION_PACED',
    ]);
    const met = { code: 'DISK_FULL', message: 'full', hint: '', facts: {} } as const;
    const last = { ...full.last, outcome: 'failed' } as const;
    assert.deepEqual(one({ ...unpaused, last, problems: [met] }), ['failed', 'DISK_FULL']);
    assert.deepEqual(one(unpaused), [undefined, undefined]);
    assert.deepEqual(one({ ...unpaused, bundles: full.bundles }), ['failed', 'SERVER_ERROR']);
  });

  it('reports a host without an agent as neither stopped nor unhealthy', () => {
    const { problems: _, ...well } = full;
    const stopped = { ...well, agent: 'stop', problems: [], refusals: [] } as const;
    assert.equal(makeReport(stopped, facts()).agent, 'stop');
    assert.ok(makeReport(stopped, facts()).findings.includes('NO_AGENT'));
    const report = makeReport(stopped, facts({ sender: 'pull' }));
    assert.equal(report.agent, 'pull');
    assert.ok(!report.findings.includes('NO_AGENT'));
  });

  it('has another fingerprint after a change, and the same if only times changed', () => {
    const before = reportFingerprint(makeReport(full, facts()));
    const later = {
      ...full,
      atMs: atMs + 1,
      trust: [{ ...full.trust[0], version: 2, expiresAtMs: atMs + 6e9 }],
    };
    assert.equal(reportFingerprint(makeReport(later, facts({ everyMs: 1000 }))), before);
    assert.notEqual(reportFingerprint(makeReport({ ...full, confirmed: false }, facts())), before);
    assert.notEqual(reportFingerprint(makeReport({ ...full, agent: 'stop' }, facts())), before);
  });
});
