// The checkers of real daemons on their real main configuration, which names policy by its active path.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { defaultHookSandbox } from '../../../src/core/config/hook-sandbox.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { confinedHost, judged, runInSandbox } from '../../kit/host/confined-host.js';
import type { TestHost } from '../../kit/host/test-host.js';
import { needs } from '../../kit/programs/real-programs.js';

const isRoot = process.getuid?.() === 0;
const options = { timeout: 120_000, ...needs('bwrap', 'bubblewrap') };

/** The main configuration of an nginx that includes the active policy. */
function mainConfig(dir: TempDir, policy: string): string {
  for (const name of ['log', 'run', 'temp']) {
    fs.mkdirSync(dir.join(name));
    fs.chmodSync(dir.join(name), 0o777);
  }
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${dir.join('temp', name)};`)
    .join(' ');
  const text = `pid ${dir.join('run/nginx.pid')};
error_log ${dir.join('log/error.log')};
events {}
http { access_log ${dir.join('log/access.log')}; ${temporary} include ${policy}/current/access/*.conf; }
`;
  fs.writeFileSync(dir.join('nginx.conf'), text);
  return dir.join('nginx.conf');
}

describe('nginx -t in the sandbox', { ...options, ...needs('nginx', 'nginx-light') }, () => {
  it('judges the real main configuration with the new tree, before the link moves', async () => {
    using dir = tempDir();
    fs.chmodSync(dir.path, 0o755);
    const box = {
      ...defaultHookSandbox,
      binds: [dir.join('nginx.conf')],
      writable: [dir.join('log'), dir.join('run'), dir.join('temp')],
      userNamespace: isRoot ? ('no' as const) : ('yes' as const),
    };
    const run = ['nginx', '-t', '-c', dir.join('nginx.conf'), '-e', dir.join('log/error.log')] as const;
    using test: TestHost = confinedHost({ kind: 'run', name: 'nginx', run, timeoutMs: 60_000, box });
    mainConfig(dir, test.host.paths.policy);
    // A port and an address that only root can bind, on a host that has neither free.
    const listen = isRoot ? '192.0.2.1:443' : '127.0.0.1:8443';
    const good = `server { listen ${listen}; return 200 "1"; }\n`;
    await test.publish('access', { 'site.conf': good }, { serial: 1 });
    const first = await judged(test);
    assert.equal(first.outcome, 'activated', JSON.stringify(first));
    await test.publish('access', { 'site.conf': good.replace('return', 'retrun') }, { serial: 2 });
    const { outcome, code, text } = await judged(test);
    assert.deepEqual([outcome, code], ['rejected', 'CHECK_FAILED']);
    assert.match(text, /unknown directive "retrun" in .*\/current\/access\/site\.conf:1/);
    assert.equal(test.read('access/site.conf'), good);
  });
});

describe('a check that reads owners', options, () => {
  it('reads the real owners without a user namespace of its own', {
    skip: isRoot ? false : 'only root can leave the user namespace out',
  }, async () => {
    const script = 'stat -c %U /etc/passwd';
    assert.equal((await runInSandbox(script)).text, 'nobody');
    assert.equal((await runInSandbox(script, { userNamespace: 'no' })).text, 'root');
  });

  it('cannot run so under an agent that is not root', {
    skip: isRoot ? 'root can' : false,
  }, async () => {
    assert.equal((await runInSandbox('true', { userNamespace: 'no' })).code, 'SANDBOX_BROKEN');
  });
});
