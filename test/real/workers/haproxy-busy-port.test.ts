// A real HAProxy before 2.7 accepts a reload in silence, pauses its listeners while it fails to bind a port in use, and then
// serves the old policy. The configuration of the page must roll such a release back.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { parseDocument } from 'yaml';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { freePort } from '../../kit/programs/free-port.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';
import { placed, readRecipe } from '../../truth/rules/recipe.js';

const options = { timeout: 240_000, ...needs('curl', 'curl'), ...needs('haproxy', 'haproxy') };
const execute = promisify(execFile);

describe('a real HAProxy, as its page configures it', { ...options, ...longCase }, () => {
  it('rolls back a release with a frontend on a port in use', async () => {
    using dir = tempDir();
    const port = await freePort();
    const taken = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => taken.once('listening', resolve));
    const address = taken.address();
    const takenPort = typeof address === 'object' && address !== null ? address.port : 0;
    const [policy, socket, pidFile, main] = [
      dir.join('state/policy'),
      dir.join('master'),
      dir.join('haproxy.pid'),
      dir.join('haproxy.cfg'),
    ];
    const page = readRecipe(readFileSync(join(projectRoot, 'docs/daemons/haproxy.md'), 'utf8'));
    const recipe = placed(page, [
      ['/var/lib/writ/policy', policy],
      ['/etc/haproxy/haproxy.cfg', main],
      ['/run/haproxy-master.sock', socket],
      ['/run/haproxy.pid', pidFile],
      ['unit: haproxy.service', `pidFile: ${pidFile}`],
      ['http://127.0.0.1/', `http://127.0.0.1:${port}/`],
    ]);
    mkdirSync(dir.join('state'), { recursive: true });
    writeFileSync(
      main,
      'defaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\n',
    );
    const release = (version: string, more = ''): Record<string, string> => ({
      'policy.cfg': `frontend web\n  bind 127.0.0.1:${port}\n${more}  http-request return status 200 content-type text/plain string "${version}"\n`,
      stamp: version,
    });
    const agent = parseDocument(recipe.agent);
    // Its files are below /tmp, which a sandbox hides.
    agent.deleteIn(['workers', 0, 'probe', 'network']);
    const config = { sandbox: 'off', ...(agent.toJS() as object) };
    await using writ = await wholeSystem(dir, { config, pollEvery: '30d' });
    await writ.publish(release('v1'));
    const first = await writ.pull();
    assert.equal(first.json['generation'], 1, JSON.stringify(first.json));
    const [program, ...args] = recipe.own.trim().split(/\s+/);
    const child = spawn(program ?? '', args, { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('close', resolve));
    const served = async (): Promise<string> =>
      (
        await execute('curl', ['-sS', '--noproxy', '*', `http://127.0.0.1:${port}/`]).catch(() => ({
          stdout: '',
        }))
      ).stdout;
    try {
      await until(async () => existsSync(socket) && (await served()) === 'v1');
      await writ.publish(release('v2'));
      const good = await writ.pull();
      assert.equal(good.exitCode, 0, JSON.stringify(good.json));
      await writ.publish(release('v3', `  bind 127.0.0.1:${takenPort}\n`));
      const bad = await writ.pull();
      const [problem] = bad.json['problems'] as { code: string }[];
      assert.deepEqual([bad.exitCode, problem?.code], [5, 'PROBE_FAILED'], JSON.stringify(bad.json));
      assert.equal(await served(), 'v2');
    } finally {
      child.kill('SIGKILL');
      await ended;
      taken.close();
    }
  });
});
