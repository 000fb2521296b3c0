// A host whose nginx serves by policy: `nginx -t` judges before anybody can see it, the replaced children and a curl
// prove it. What Writ says and what curl gets are the same, whatever is published.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { expectAgreement } from '../../kit/assert/agreement.js';
import { longCase } from '../../kit/assert/long-case.js';
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

/** The probe holds what curl gets to what the release says that it serves. */
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

describe('a real nginx, fed by Writ', { ...options, ...longCase }, () => {
  it('serves what was published and proven, and nothing that nginx or curl says no to', async (t) => {
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

    await t.test('takes two releases, each by new children under the same master', async () => {
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
      'has a mistake refused by `nginx -t` before the link moves: the same children go on',
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
      'goes back, and proves it, when it loads a release and then serves something else',
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
