// `npm run outages` as a person runs it: every row ends as expected. Programs that are missing skip their row, except in CI.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../../outages/outages.js', import.meta.url));

describe('npm run outages', { timeout: 900_000 }, () => {
  it('replays every outage, and each host serves good policy at the end', async () => {
    const child = spawn(process.execPath, [program, '--json'], { stdio: ['ignore', 'pipe', 'inherit'] });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    const [exitCode] = await once(child, 'close');
    assert.equal(exitCode, 0, stdout);
    const { outages } = JSON.parse(stdout) as { outages: { complaints?: string[] }[] };
    assert.deepEqual(
      outages.flatMap(({ complaints = [] }) => complaints),
      [],
    );
  });
});
