// Runs the demo as `npm run demo` does. The demo checks each exit code and answer itself. This test checks that it
// succeeds, prints that, and leaves neither a process nor a file, however it ends.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

const program = fileURLToPath(new URL('../../../demo/demo.js', import.meta.url));

interface Demo {
  readonly child: ChildProcess;
  stdout(): string;
  /** Resolves when its stdout has this text. */
  prints(text: string): Promise<void>;
  readonly ended: Promise<number | null>;
}

function startDemo(temporary: TempDir, env: NodeJS.ProcessEnv = {}, args: readonly string[] = []): Demo {
  const child = spawn(process.execPath, [program, ...args], {
    env: { PATH: process.env['PATH'], TMPDIR: temporary.path, ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (exitCode) => resolve(exitCode));
  });
  const prints = (text: string): Promise<void> =>
    new Promise((resolve) => {
      const resolveIfPrinted = (): void => (stdout.includes(text) ? resolve() : undefined);
      child.stdout.on('data', resolveIfPrinted);
      resolveIfPrinted();
    });
  return { child, stdout: () => stdout, prints, ended };
}

/** Command lines of all processes that name the directory: every child of the demo does, or runs in it. */
function processesOf(directory: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8');
      } catch {
        return '';
      }
    })
    .filter((text) => text.includes(directory));
}

describe('the demo', () => {
  it('shows the main job and a fleet, continues to run on request, and leaves nothing', async () => {
    using temporary = tempDir();
    // The demo excludes the environment of its reader. Colours are those of a terminal.
    const env = { WRIT_CONFIG: '/nowhere', WRIT_CHANNEL: 'canary', FORCE_COLOR: '1' };
    const demo = startDemo(temporary, env, ['--stay']);
    await Promise.race([demo.prints('All of it stays up'), demo.ended]);
    const hasSupervisord = needs('supervisord', 'supervisor').skip === undefined;
    const bakeLines = hasSupervisord
      ? ['(edge 2, edge-2)', '\nedge-2\n', 'BAKE_FAILED', '\nedge-1\n']
      : ['apt-get install supervisor'];
    const expectedLines = [
      'CREATED repository repo',
      'PUBLISHED access stable serial 1 (first)',
      'LISTENING http://127.0.0.1:',
      '{"allowed":true,"generation":1,"name":"worker-1"}',
      'ACTIVATED generation 2 (access 2, second)',
      '{"allowed":false,"generation":2,"name":"worker-2"}',
      'FAILED  access 3 [DOWNLOAD_DIGEST]',
      'ACTIVATED generation 4 (access 3, third)',
      'REJECTED  access 4 [CHECK_FAILED]',
      'REJECTED  access 4 [REMEMBERED_REFUSAL]',
      'ROLLED BACK  generation 4 is active again',
      'ACTIVATED generation 2 (access 2, second) again',
      'when (UTC)',
      '(access 6, mended)',
      ...bakeLines,
      'REACHED   access 6: 3 of 3 done',
      'REJECTED  access 7 [CHECK_FAILED]',
      'OUT OF REACH access 7',
      'edge-3 refused it [CHECK_FAILED]',
      'CRITICAL 1 host (edge-3) refused access 7 (CHECK_FAILED)',
    ];
    const shown = stripVTControlCharacters(demo.stdout());
    assert.notEqual(shown, demo.stdout());
    let from = 0;
    for (const line of expectedLines) {
      const at = shown.indexOf(line, from);
      assert.notEqual(at, -1, `${line}\nis missing, or not in its place, in\n${shown}`);
      from = at;
    }
    assert.match(shown, /\n(10|11|13|14) steps, all as expected\n/);
    const [, url = '', token = ''] =
      /live: (http:\S+) takes the token (\S+)/.exec(shown) ?? assert.fail(shown);
    const page = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    assert.match(await page.text(), /policy\.yaml:5:/);
    demo.child.kill('SIGTERM');
    assert.equal(await demo.ended, 0, demo.stdout());
    assert.deepEqual(readdirSync(temporary.path), []);
    assert.deepEqual(processesOf(temporary.path), []);
  });

  it('ends its children and removes its directory when it is interrupted', async () => {
    using temporary = tempDir();
    const demo = startDemo(temporary);
    await until(() => demo.stdout().includes('worker-2 listens'));
    assert.notDeepEqual(processesOf(temporary.path), []);
    demo.child.kill('SIGINT');
    assert.equal(await demo.ended, 130);
    assert.deepEqual(readdirSync(temporary.path), []);
    assert.deepEqual(processesOf(temporary.path), []);
  });

  it('ends with exit 1 and a clear line when something is not as expected', async () => {
    using temporary = tempDir();
    // Writ does not create keys and a repository in a directory that all users can write; stderr has the code.
    chmodSync(temporary.path, 0o777);
    const demo = startDemo(temporary);
    assert.equal(await demo.ended, 1, demo.stdout());
    assert.match(demo.stdout(), /\nNOT AS EXPECTED: the exit code of writ init is 2, expected 0/);
    assert.deepEqual(readdirSync(temporary.path), []);
  });
});
