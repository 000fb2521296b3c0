// The main job with real resolvers: they answer from the published release, and a release that does not parse never reaches
// them. Each report about them is compared with their answers.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type WholeSystem, wholeSystem } from '../../kit/agent/whole-system.js';
import { expectAgreement } from '../../kit/assert/agreement.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type RealKresd, startRealKresd } from '../../kit/programs/real-kresd.js';
import { needs } from '../../kit/programs/real-programs.js';
import { readableCheckout } from '../../kit/sources/readable-checkout.js';

const options = {
  timeout: 240_000,
  ...needs('dig', 'bind9-dnsutils'),
  ...needs('kresd', 'knot-resolver'),
  ...needs('bwrap', 'bubblewrap'),
};
const sample = readFileSync('bundles/dns-edge/block.rpz', 'utf8');
const old = { '192.0.2.1': 20 };
const both = { '1': 'confirmed', '2': 'confirmed' };

function release(address: string): Record<string, string> {
  return { 'block.rpz': sample.replace('192.0.2.1', address) };
}

function configFor(kresd: RealKresd): Record<string, unknown> {
  // The sandbox runs the check as an unprivileged user.
  const script = join(readableCheckout(), 'docs/examples/dns-edge/rpz-check.conf');
  const run = ['kresd', '-n', '-c', script, '-c', '-', '{scratch}'];
  const check = { name: 'block.rpz parses', run, timeout: '60s', binds: [script] };
  const reset = {
    kresd: kresd.controlGlob,
    command: 'policy_reset()',
    expect: '0',
    confirms: true,
    timeout: '60s',
  };
  const canary = { run: ['sh', '-c', '! grep -q 192.0.2.66 "$1"', 'sh', '{bundle}/block.rpz'] };
  return {
    sandbox: 'required',
    bundles: [{ name: 'dns-edge', checks: [check] }],
    workers: [{ name: 'resolver', uses: ['dns-edge'], when: ['block.rpz'], reset, canary }],
  };
}

describe('two real resolvers on one port, fed by Writ', options, () => {
  it('load publishes and rollbacks, keep their answers when a policy is refused, and are named when dead', async (t) => {
    using dir = tempDir();
    await using kresd = await startRealKresd({ policy: dir.join('state/policy') });
    await using writ = await wholeSystem(dir, { config: configFor(kresd) });
    const answers = (): Promise<Readonly<Record<string, number>>> => kresd.ask('app.example.com');
    const pids = kresd.pids();
    await writ.publish(release('192.0.2.1'));
    await writ.startAgent();
    const first = await writ.pull();
    assert.equal(first.exitCode, 0, JSON.stringify(first));

    await t.test('20 of 20 answers are old before a publish and one poll, and new after it', async () => {
      assert.deepEqual(await answers(), old);
      // A poll may happen before the publish command has returned.
      const sinceMs = Date.now();
      await writ.publish(release('192.0.2.2'));
      const poll = await writ.nextPoll({ sinceMs, hasChange: true });
      assert.equal(poll['outcome'], 'activated', JSON.stringify(poll));
      assert.equal(poll['confirmed'], true);
      assert.deepEqual(await answers(), { '192.0.2.2': 20 });
      assert.deepEqual(kresd.pids(), pids, 'no worker was restarted');
    });

    await writ.pollEvery('30d');
    await t.test('a list that does not parse is rejected by the check and reaches no worker', async () => {
      const current = writ.current();
      await writ.publish({ 'block.rpz': sample.replace('192.0.2.1', '192.0.2.999') });
      const pull = await writ.pull();
      const refused = { exitCode: 3, outcome: 'rejected', code: 'CHECK_FAILED', workers: both };
      await expectAgreement(writ, pull, refused);
      const [bundle] = pull.json['bundles'] as { problem: { code: string; facts: Record<string, string> } }[];
      assert.equal(bundle?.problem.facts['check'], 'block.rpz parses');
      assert.match(bundle?.problem.facts['output'] ?? '', /block\.rpz:\d+: invalid IPv4 address/);
      const shown = await runWritProcess(['pull', '--force', '--config', writ.config]);
      assert.equal(shown.exitCode, 3);
      assert.match(shown.stdout, /"block.rpz parses".*block\.rpz:\d+: invalid IPv4 address/s);
      assert.deepEqual(pull.json['workers'], []);
      assert.equal(writ.current(), current);
      assert.deepEqual(await answers(), { '192.0.2.2': 20 });
      assert.deepEqual(kresd.pids(), pids);
    });

    await t.test(
      'the workers keep their processes and their answers after a refusal of the canary',
      async () => {
        const current = writ.current();
        await writ.publish(release('192.0.2.66'));
        const refused = { exitCode: 3, outcome: 'rejected', code: 'CANARY_FAILED', workers: both };
        await expectAgreement(writ, await writ.pull(), refused);
        assert.equal(writ.current(), current);
        assert.deepEqual(await answers(), { '192.0.2.2': 20 });
        assert.deepEqual(kresd.pids(), pids);
      },
    );

    await t.test(
      'the stale socket of a killed worker gives exit 4 and is named; the other is updated',
      async () => {
        const { 1: survivor } = kresd.pids();
        await kresd.kill('2');
        await writ.publish(release('192.0.2.4'));
        const pull = await writ.pull();
        const half = { exitCode: 4, outcome: 'degraded', code: 'WORKERS_MISSING' };
        await expectAgreement(writ, pull, { ...half, workers: { '1': 'confirmed', '2': 'unreachable' } });
        assert.match(JSON.stringify(pull.json['problems']), /control\/2: ECONNREFUSED/);
        assert.deepEqual(await answers(), { '192.0.2.4': 20 });
        assert.deepEqual(kresd.pids(), { 1: survivor });
      },
    );

    await t.test('the worker is notified when it is back', async () => {
      await kresd.start('2');
      const pull = await writ.pull();
      assert.equal(pull.exitCode, 0, JSON.stringify(pull));
      assert.deepEqual(await answers(), { '192.0.2.4': 20 });
    });

    await t.test(
      'the old answers return after a rollback, and no poll activates the release again',
      async () => {
        const before = kresd.pids();
        const back = await writ.rollback();
        await expectAgreement(writ, back, { exitCode: 0, outcome: 'activated', workers: both });
        assert.deepEqual(await answers(), { '192.0.2.2': 20 });
        assert.deepEqual(kresd.pids(), before);
        const rolledBack = writ.current();
        await writ.pollEvery('1s');
        const poll = await writ.nextPoll();
        assert.equal(poll['outcome'], 'deferred', JSON.stringify(poll));
        assert.equal(writ.current(), rolledBack);
        assert.deepEqual(await answers(), { '192.0.2.2': 20 });
        await expectHold(writ);
      },
    );
  });
});

async function expectHold(writ: WholeSystem): Promise<void> {
  const { holds } = (await writ.status()) as { holds?: { bundle: string; serial: number }[] };
  assert.deepEqual(
    holds?.map(({ bundle, serial }) => [bundle, serial]),
    [['dns-edge', 5]],
  );
}
