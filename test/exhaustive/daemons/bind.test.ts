// A zone file in a bundle, served by a real BIND. BIND loads a file only when it is newer than the loaded one, so a rollback
// would have no effect without modification times that Writ sets.
import assert from 'node:assert/strict';
import { renameSync, statSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type RealNamed, startNamed } from '../../kit/programs/real-named.js';
import { needs } from '../../kit/programs/real-programs.js';

const options = {
  timeout: 120_000,
  ...needs('bwrap', 'bubblewrap'),
  ...needs('dig', 'bind9-dnsutils'),
  ...needs('named', 'bind9'),
};
const zone = 'example.test';
const refusedVersion = 3;
const question = `version.${zone}`;

function release(version: number): Record<string, string> {
  const head = `$TTL 60\n@ SOA ns hostmaster ${version} 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n`;
  return { [zone]: `${head}version TXT "${version}"\n` };
}

/** rndc prints "queued" and exits with 0 before it loads anything, so only a DNS query shows the served version. */
function configFor(named: RealNamed): Record<string, unknown> {
  const ask = `dig +short +tries=1 +time=1 @127.0.0.1 -p ${named.port}`;
  const served = `want=$(sed -n 's/^version TXT //p' "$1/${zone}"); test "$want" = "$(${ask} ${question} TXT)"`;
  const probe = `${served} && test "$want" != '"${refusedVersion}"'`;
  const worker = {
    name: 'bind',
    uses: ['zones'],
    reset: { run: named.reload, timeout: '5s' },
    probe: { run: ['sh', '-c', probe, 'probe', '{bundle}'], timeout: '5s', retry: 6, network: true },
    confirm: 'required',
  };
  return { sandbox: 'required', bundles: [{ name: 'zones' }], workers: [worker] };
}

/** Changes the link `current` by hand, without a notification. */
function pointAt(policy: string, generation: string): void {
  symlinkSync(generation, join(policy, 'by-hand'));
  renameSync(join(policy, 'by-hand'), join(policy, 'current'));
}

describe('a real BIND with its zone file in a bundle', options, () => {
  it('serves each version after its publish, and the previous one after a rollback', async (t) => {
    using dir = tempDir();
    const file = dir.join('state/policy/current/zones', zone);
    await using named = await startNamed(dir.join('named'), { name: zone, file });
    await using writ = await wholeSystem(dir, { config: configFor(named) });
    const mtimeOf = (path: string): number => statSync(path).mtimeMs;

    await t.test('serves version 1, then version 2 after one poll', async () => {
      await writ.publish(release(1));
      await writ.startAgent();
      const first = await writ.pull();
      assert.equal(first.exitCode, 0, JSON.stringify(first) + named.log());
      assert.equal(await named.text(question), '"1"');
      // A poll may activate the release before the publish has returned.
      const sinceMs = Date.now();
      await writ.publish(release(2));
      const poll = await writ.nextPoll({ sinceMs, hasChange: true });
      assert.equal(poll['outcome'], 'activated', JSON.stringify(poll));
      assert.equal(poll['confirmed'], true, 'the probe saw it');
      assert.equal(await named.text(question), '"2"');
    });

    await writ.pollEvery('30d');
    await t.test('serves version 2 again when the probe refuses version 3, which it had loaded', async () => {
      await writ.publish(release(refusedVersion));
      const pull = await writ.pull();
      assert.equal(pull.exitCode, 5, JSON.stringify(pull) + named.log());
      assert.equal(pull.json['code'], 'PROBE_FAILED');
      assert.match(named.log(), new RegExp(`loaded serial ${refusedVersion}$`, 'm'));
      assert.equal(await named.text(question), '"2"');
    });

    await t.test(
      'serves version 1 after `writ rollback`: its file is newer than the one it loaded',
      async () => {
        const loadedMs = mtimeOf(file);
        const back = await writ.rollback();
        assert.equal(back.exitCode, 0, JSON.stringify(back) + named.log());
        assert.equal(back.json['confirmed'], false, 'one answer of a probe does not confirm a rollback');
        await until(async () => (await writ.status())['confirmed'] === true);
        assert.equal(await named.text(question), '"1"');
        assert.ok(mtimeOf(file) > loadedMs);
      },
    );

    await t.test('would stay at what it has if the file were not newer', async () => {
      await writ.stopAgent();
      const other = join(writ.policy, 'generations/2/zones', zone);
      const seconds = Math.floor(Date.now() / 1000) + 1;
      await until(() => Date.now() / 1000 > seconds);
      utimesSync(file, seconds, seconds);
      const loads = timesLoaded(named);
      assert.equal(await named.reloadByHand(), 'zone reload queued');
      await until(() => timesLoaded(named) > loads);
      utimesSync(other, seconds, seconds);
      pointAt(writ.policy, 'generations/2');
      assert.equal(await named.reloadByHand(), 'zone reload up-to-date');
      assert.equal(await named.text(question), '"1"');
      utimesSync(other, seconds + 1, seconds + 1);
      assert.equal(await named.reloadByHand(), 'zone reload queued');
      await until(async () => (await named.text(question)) === '"2"');
    });
  });
});

function timesLoaded(named: RealNamed): number {
  return named.log().match(/loaded serial/g)?.length ?? 0;
}
