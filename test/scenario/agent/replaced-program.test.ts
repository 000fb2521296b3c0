// An upgrade under a running agent: its program files are deleted, also those of modules that it has not loaded yet.
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { writVersion } from '../../../src/core/version.js';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { startWrit, type WritProcess } from '../../kit/cli/writ-process.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { projectRoot } from '../../kit/sources/source-files.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });

interface Installed {
  readonly site: WritSite;
  start(): WritProcess;
  /** Deletes the program, as an upgrade deletes files that the next version does not have. */
  remove(): void;
  /** The next version, in the same place. */
  upgrade(): void;
  /** The configuration as it was, with these keys over it. */
  configure(keys: Readonly<Record<string, unknown>>): void;
}

/** An agent of a copy of the program; commands run from another installation. */
function installed(dir: TempDir, keys: Readonly<Record<string, unknown>> = {}): Installed {
  const site = writSite(dir, { sandbox: 'off', ...keys });
  const before = JSON.parse(readFileSync(site.config, 'utf8')) as object;
  const home = dir.join('installed');
  const program = join(home, 'dist/writ');
  const install = (): void => {
    mkdirSync(join(home, 'dist'), { recursive: true });
    cpSync(dirname(writProgram), program, { recursive: true });
    for (const name of ['package.json', 'node_modules'])
      symlinkSync(join(projectRoot, name), join(home, name));
  };
  install();
  return {
    site,
    start: () => startWrit(['agent', '--config', site.config], {}, { entry: join(program, 'main.js') }),
    remove: () => rmSync(home, { recursive: true }),
    upgrade: () => {
      install();
      for (const name of readdirSync(program).filter((one) => one.endsWith('.js'))) {
        const code = readFileSync(join(program, name), 'utf8');
        writeFileSync(join(program, name), code.replaceAll(`"${writVersion}"`, '"99.0.0"'));
      }
    },
    configure: (more) => writeFileSync(site.config, JSON.stringify({ ...before, ...more })),
  };
}

const codes = (json: Record<string, unknown>): string[] =>
  (json['problems'] as { code: string }[]).map((one) => one.code);

describe('an agent with a replaced program on disk', () => {
  it('keeps its configuration and reports PROGRAM_REPLACED when a new one needs a deleted module', async () => {
    using dir = tempDir();
    const { site, start, remove, configure } = installed(dir);
    await site.repository.publish(zone(1));
    await using agent = start();
    await agent.waitForStderr(/"msg":"cycle ended"/);
    remove();
    configure({ repository: 'http://127.0.0.1:9/' });
    const { code, configuration } = await site.json('reload');
    assert.deepEqual([code, configuration], ['PROGRAM_REPLACED', undefined]);
    assert.deepEqual(codes(await site.json('status')), ['PROGRAM_REPLACED']);
    await site.repository.publish(zone(2));
    assert.equal((await site.json('pull'))['outcome'], 'activated');
    configure({ pol: 1 });
    assert.equal((await site.json('reload'))['code'], 'PROGRAM_REPLACED');
  });

  it('notifies a worker over HTTP for the first time', async () => {
    using dir = tempDir();
    await using daemon = await listening();
    const reset = { http: `http://127.0.0.1:${daemon.port}/reload` };
    const { site, start, remove } = installed(dir, {
      workers: [{ name: 'edge', uses: ['dns-edge'], reset }],
    });
    await using agent = start();
    await agent.waitForStderr(/"state":"run"/);
    remove();
    await site.repository.publish(zone(1));
    // The agent may have polled since: it runs the cycle of a poll and that of the command.
    const { generation, warnings } = await site.json('pull');
    assert.deepEqual([generation, daemon.asked()], [1, 1], JSON.stringify(warnings));
  });

  it('runs no check of another version on a release, and records no refusal', async () => {
    using dir = tempDir();
    const checks = [{ name: 'json', parse: ['*.json'] }];
    const { site, start, remove, upgrade } = installed(dir, { bundles: [{ name: 'dns-edge', checks }] });
    await using agent = start();
    await agent.waitForStderr(/"state":"run"/);
    remove();
    await site.repository.publish({ 'a.json': '{}' });
    for (const act of [() => undefined, upgrade]) {
      act();
      const result = await site.json('pull');
      assert.deepEqual([result['generation'], codes(result)], [undefined, ['PROGRAM_REPLACED']]);
      assert.deepEqual(codes(await site.json('status')), ['PROGRAM_REPLACED']);
    }
    agent.child.kill('SIGTERM');
    await agent.ended;
    assert.equal((await site.json('pull'))['outcome'], 'activated');
  });
});

interface Daemon extends AsyncDisposable {
  readonly port: number;
  asked(): number;
}

async function listening(): Promise<Daemon> {
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    response.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked: () => asked,
    [Symbol.asyncDispose]: async () => void server.close().closeAllConnections(),
  };
}
