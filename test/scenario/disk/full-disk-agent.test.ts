// A real agent whose state is on a real small file system. Its worker fills that and refuses, the reserve is gone, and the agent is
// killed meanwhile: the worker serves the old policy all the time, and nothing is forgotten.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { needsMounts, runMounted } from '../../kit/disk/mounted.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const worker = `#!/bin/sh
echo "$(cat "$1/b/p.txt")" >> calls
fill() { cat /dev/zero 2>/dev/null >> state/log; }
if grep -q bad "$1/b/p.txt"; then fill; echo "field 21" >&2; exit 1; fi
# The reserve of the journal has given a few pages back by now, in which the ledger may find room.
if [ -e state/log ]; then fill; fi
cp "$1/b/p.txt" served
`;

const script = (path: string) => `
  import * as fs from 'node:fs';
  process.chdir(${JSON.stringify(path)});
  const { wholeSystem } = await import(at('test/kit/agent/whole-system.js'));
  const { runWritProcess } = await import(at('test/kit/cli/writ-process.js'));
  const { until } = await import(at('test/kit/assert/until.js'));
  const join = (...parts) => [process.cwd(), ...parts].join('/');
  fs.writeFileSync('worker', ${JSON.stringify(worker)}.replaceAll(' calls', ' ' + join('calls'))
    .replaceAll('state/log', join('state/log')).replaceAll(' served', ' ' + join('served')), { mode: 0o755 });
  const reset = { run: [join('worker'), '{current}'] };
  const config = { bundles: [{ name: 'b' }], workers: [{ name: 'w', uses: ['b'], reset }] };
  const writ = await wholeSystem({ path: process.cwd(), join }, { config });
  const health = async () => JSON.parse((await runWritProcess(['health', '--config', writ.config, '--json'])).stdout);
  const codes = async () => (await health()).findings.map(({ level, code, text }) => level + ' ' + code + (/DISK_FULL.*WORKER_REFUSED/.test(text) ? ' names both' : ''));
  const calls = () => fs.readFileSync('calls', 'utf8').trim().split('\\n');
  const now = async () => [writ.current(), fs.readFileSync('served', 'utf8').trim()];
  const found = {};
  try {
    await writ.publish({ 'p.txt': 'good\\n' });
    await writ.startAgent();
    await until(() => writ.current() !== undefined);
    await until(() => fs.existsSync('state/reserve'));
    fs.rmSync('state/reserve');
    await writ.publish({ 'p.txt': 'bad\\n' });
    await until(() => calls().at(-1) === 'good' && calls().includes('bad'));
    await until(async () => /RESTORE_UNRECORDED/.test(await codes()));
    found.full = [await now(), calls(), (await codes())[0]];
    writ.agent().child.kill('SIGKILL');
    await writ.agent().ended;
    await writ.startAgent();
    await until(async () => /RESTORE_UNRECORDED/.test(await codes()));
    found.restarted = [await now(), calls().filter((one) => one === 'bad').length];
    fs.rmSync('state/log');
    await until(async () => !(await codes()).some((one) => /RESTORE_UNRECORDED|DISK_FULL/.test(one)));
    found.free = [await now(), calls().filter((one) => one === 'bad').length, await codes(), fs.existsSync('state/journal.json')];
    const { refusals } = JSON.parse(fs.readFileSync('state/rejected.json', 'utf8'));
    found.recorded = refusals.map(({ serial, code }) => [serial, code]);
  } finally {
    await writ.stop();
  }
  console.log(JSON.stringify(found));
`;

describe('an agent on a full disk', { ...needsMounts(), ...longCase }, () => {
  it('goes back at once, is critical, survives a kill, and records all of it when there is space', async () => {
    using dir = tempDir();
    const state = dir.join('state');
    const mounts = [`mkdir -m 711 ${state}`, `mount -t tmpfs -o size=8m,mode=711 none ${state}`];
    const result = await runMounted(mounts, script(dir.path));
    assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
    const critical = 'critical RESTORE_UNRECORDED names both';
    assert.deepEqual(JSON.parse('stdout' in result ? result.stdout : 'null'), {
      full: [['generations/1', 'good'], ['good', 'bad', 'good'], critical],
      restarted: [['generations/1', 'good'], 1],
      free: [
        ['generations/1', 'good'],
        1,
        ['warning REMEMBERED_REFUSAL', 'warning WORKER_UNCONFIRMED'],
        false,
      ],
      recorded: [[2, 'WORKER_REFUSED']],
    });
  });
});
