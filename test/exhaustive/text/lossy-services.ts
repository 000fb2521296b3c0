// The three services of `writ` on streams that take no text: each works, and ends cleanly.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { writSite } from '../../kit/agent/writ-site.js';
import { until } from '../../kit/assert/until.js';
import { type LossyStreams, lossyShell } from '../../kit/cli/lossy-text.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { freePort } from '../../kit/programs/free-port.js';

export const services = ['agent', 'serve', 'fleet serve'] as const;
export type Service = (typeof services)[number];

export const lossesOfServices: readonly LossyStreams[] = [
  ...(['closed', 'full', 'gone'] as const).map((loss) => ({ stdout: loss, stderr: loss })),
  { stderr: 'full' },
  ...[1, 5].map((lines) => ({ stdout: 'gone' as const, stderr: 'gone' as const, lines })),
];

const requests = 50;

/** @throws AssertionError when the service ended by itself, or did not do its work */
export async function runLossyService(service: Service, streams: LossyStreams): Promise<void> {
  using dir = tempDir();
  if (service === 'agent') {
    await runAgent(dir, streams);
    return;
  }
  const port = await freePort();
  const { repository } = writSite(dir);
  if (service === 'serve') await repository.publish({ 'block.rpz': 'one\n' });
  const own = service === 'serve' ? ['--repository', repository.directory] : ['--store', dir.join('fleet')];
  const args = [...service.split(' '), ...own, '--listen', `127.0.0.1:${port}`];
  await whileRunning(args, streams, async () => {
    const path = service === 'serve' ? 'metadata/1.root.json' : 'healthz';
    const status = () => fetch(`http://127.0.0.1:${port}/${path}`).then((answer) => answer.status);
    await until(() => status().then(Boolean, () => false));
    for (let count = 0; count < requests; count += 1) assert.equal(await status(), 200);
  });
}

async function runAgent(dir: TempDir, streams: LossyStreams): Promise<void> {
  const site = writSite(dir);
  await whileRunning(['agent', '--config', site.config], streams, async () => {
    const status = () => site.json('status');
    await until(async () => (await status())['agent'] === 'run');
    // The first poll of the agent may have been faster.
    for (const version of [1, 2]) {
      await site.repository.publish({ 'block.rpz': `version ${version}\n` });
      assert.equal((await site.json('pull'))['exitCode'], 0);
    }
    const { logLosses, generation } = await status();
    assert.equal(generation, 2);
    const code = { closed: undefined, full: 'ENOSPC', gone: 'EPIPE' }[streams.stderr ?? 'closed'];
    const { lines = 0, ...lost } = (logLosses ?? {}) as { readonly lines?: number; readonly code?: string };
    assert.deepEqual([lines > 0, lost.code], [code !== undefined, code]);
  });
  assert.equal(fs.existsSync(join(site.state, 'journal.json')), false);
}

/** Ends the program with SIGTERM after the work, and asserts that it ended for that. */
async function whileRunning(
  args: readonly string[],
  streams: LossyStreams,
  work: () => Promise<void>,
): Promise<void> {
  const [shell = '', ...rest] = lossyShell(streams);
  const child = spawn(shell, [...rest, process.execPath, writProgram, ...args], {
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  try {
    await Promise.race([work(), endsEarly(child)]);
    child.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  } finally {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  }
}

async function endsEarly(child: ChildProcess): Promise<never> {
  const [exitCode] = await once(child, 'exit');
  throw new assert.AssertionError({ message: `the service ended by itself: ${exitCode}` });
}
