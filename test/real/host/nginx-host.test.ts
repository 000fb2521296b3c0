// A host with an nginx that serves by policy: `nginx -t` judges a release before its activation, and the replaced children
// and a curl confirm it. Writ reports the same release that curl gets, for every published release.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { expectAgreement } from '../../kit/assert/agreement.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type RunningNginx, startNginx } from '../../kit/programs/nginx.js';
import { childrenOf } from '../../kit/programs/processes.js';
import { needs } from '../../kit/programs/real-programs.js';

const options = {
  timeout: 240_000,
  ...needs('curl', 'curl'),
  ...needs('nginx', 'nginx-light'),
  ...needs('bwrap', 'bubblewrap'),
};
const execute = promisify(execFile);
const isRoot = process.getuid?.() === 0;

/** The probe compares the response to curl with the text that the release expects. */
const probe = 'test "$(curl -fsS "$1")" = "$(cat "$2/web/answer")"';

function configFor(nginx: RunningNginx, directory: string): Record<string, unknown> {
  const run = ['nginx', '-t', '-c', nginx.config, '-e', 'stderr', '-g', 'pid {scratch}/nginx.pid;'];
  const userNamespace = !isRoot;
  const check = { name: 'nginx -t', run, timeout: '60s', binds: [directory], userNamespace };
  const reset = { signal: 'HUP', pidFile: nginx.pidFile, proof: 'children', timeout: '60s' };
  const ask = {
    run: ['sh', '-c', probe, 'sh', `${nginx.url}/`, '{current}'],
    network: true,
    timeout: '60s',
    retry: 2,
  };
  return {
    sandbox: 'required',
    bundles: [{ name: 'web', checks: [check] }],
    workers: [{ name: 'nginx', uses: ['web'], reset, probe: ask }],
  };
}

function release(answer: string, served = answer): Record<string, string> {
  return { 'site.conf': `return 200 "${served}\\n";\n`, answer: `${answer}\n` };
}

describe('a real nginx, fed by Writ', options, () => {
  it('serves a published and confirmed release, and none that nginx or curl rejects', async (t) => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    mkdirSync(dir.join('nginx'));
    const include = `${dir.join('state/policy')}/current/web/*.conf`;
    const block = (listen: string): string =>
      `server { listen ${listen}; location / { include ${include}; } }`;
    await using nginx = await startNginx(dir.join('nginx'), block, { workers: 2 });
    const config = configFor(nginx, dir.join('nginx'));
    await using writ = await wholeSystem(dir, { config, pollEvery: '30d' });
    const inUse = async (): Promise<string> =>
      (await execute('curl', ['-fsS', `${nginx.url}/`])).stdout.trim();
    const confirmed = { 'nginx.pid': 'confirmed' };

    await t.test('loads two releases, each by new children under the same master', async () => {
      const atStart = childrenOf(nginx.pid);
      await writ.publish(release('one'));
      await writ.startAgent();
      const first = await writ.pull();
      assert.equal(first.exitCode, 0, JSON.stringify(first.json));
      assert.equal(await inUse(), 'one');
      await writ.publish(release('two'));
      await expectAgreement(writ, await writ.pull(), {
        exitCode: 0,
        outcome: 'activated',
        workers: confirmed,
      });
      assert.equal(await inUse(), 'two');
      const now = childrenOf(nginx.pid);
      assert.equal(now.length, 2);
      assert.deepEqual(
        now.filter((pid) => atStart.includes(pid)),
        [],
      );
    });

    await t.test(
      'keeps its children after a mistake that `nginx -t` refuses before the link moves',
      async () => {
        const [current, children] = [writ.current(), childrenOf(nginx.pid)];
        await writ.publish({ ...release('three'), 'site.conf': 'retrun 200 "three\\n";\n' });
        const pull = await writ.pull();
        const refused = { exitCode: 3, outcome: 'rejected', code: 'CHECK_FAILED', workers: confirmed };
        await expectAgreement(writ, pull, refused);
        assert.match(
          JSON.stringify(pull.json['problems']),
          /unknown directive .*retrun.*current\/web\/site\.conf:1/,
        );
        assert.equal(writ.current(), current);
        assert.deepEqual(childrenOf(nginx.pid), children);
        assert.equal(await inUse(), 'two');
      },
    );

    await t.test(
      'restores, and confirms that, when it loads a release and then serves another text',
      async () => {
        const current = writ.current();
        await writ.publish(release('four', 'FOUR'));
        const workers = { 'nginx.pid': 'notified' };
        const back = { exitCode: 5, outcome: 'rolled-back', code: 'PROBE_FAILED', workers };
        await expectAgreement(writ, await writ.pull(), back);
        assert.equal(writ.current(), current);
        assert.equal(await inUse(), 'two');
      },
    );
  });
});
