// The signal driver with a real nginx: replaced children confirm a reload, remaining children do not.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { signal } from '../../../src/workers/drivers/signal.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { rawGet } from '../../kit/net/raw-request.js';
import { startNginx } from '../../kit/programs/nginx.js';
import { needs } from '../../kit/programs/real-programs.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const reset = { target: { generation: 7, path: '/policy/generations/7' }, timeoutMs: 60_000 };

describe('the real nginx, notified by a signal', needs('nginx', 'nginx-light'), () => {
  it('confirms by new children, and has no verdict on a policy that nginx refuses', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('nginx'));
    const write = (line: string): void => writeFileSync(dir.join('policy.conf'), line);
    write('return 200 "one";');
    const block = (listen: string): string =>
      `server { listen ${listen}; location / { include ${dir.join('policy.conf')}; } }`;
    await using nginx = await startNginx(dir.join('nginx'), block, { workers: 2 });
    // A new connection for each request, because a kept one ends with its child.
    const inUse = async (): Promise<string> => (await rawGet(nginx.url, '/')).body;
    const driver = signal.create(
      { signal: 'HUP', pidFile: nginx.pidFile, proof: 'children' },
      driverContext(),
    );
    const [worker = ''] = await driver.members();
    const before = await driver.identity?.(worker);

    write('return 200 "two";');
    const answer = await driver.reset(worker, reset);
    assert.equal(answer.kind, 'confirmed');
    assert.match(answer.text, /replaced its 2 children/);
    assert.equal(await inUse(), 'two');

    write('return 200 "three"');
    const refusal = await driver.reset(worker, { ...reset, timeoutMs: 1000 });
    assert.equal(refusal.kind, 'unreachable');
    assert.match(refusal.text, /2 of its 2 children still serve as before/);
    assert.equal(await inUse(), 'two');
    // An operator can configure this silence as a refusal; the silence of a stopped master never is one.
    const strict = signal.create(
      { signal: 'HUP', pidFile: nginx.pidFile, proof: 'children', onSilence: 'rollback' },
      driverContext(),
    );
    await strict.members();
    const short = { ...reset, timeoutMs: 1000 };
    assert.equal((await strict.reset(worker, short)).silence, 'refuses');
    const pid = Number(readFileSync(nginx.pidFile, 'utf8'));
    process.kill(pid, 'SIGSTOP');
    try {
      const stopped = await strict.reset(worker, short);
      assert.deepEqual([stopped.kind, stopped.silence], ['unreachable', undefined]);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    // The master stays the same process.
    assert.equal(await driver.identity?.(worker), before);
    assert.equal(await driver.liveness?.(worker), 'alive');
  });
});
