// The check of a process right before a signal, and units with a main process that systemd does not report reliably.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { defaultPath } from '../../../../src/platform/process/run-command.js';
import { createWorkerProcess, parsePlace } from '../../../../src/workers/identity/worker-process.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { stubSystemctl } from '../../../kit/programs/stub-systemctl.js';
import { driverContext } from '../../../kit/workers/driver-context.js';
import { startFakeWorker } from '../../../kit/workers/fake-worker.js';

describe('a process that is about to be notified', () => {
  async function confirmEach(kind: 'pidFile' | 'unit'): Promise<void> {
    using dir = tempDir();
    const worker = await startFakeWorker(dir.join('log'));
    writeFileSync(dir.join('pid'), String(worker.pid));
    const stub = stubSystemctl(dir.path);
    stub.unit('app.service', { mainPid: worker.pid });
    const place =
      kind === 'unit' ? ({ kind, unit: 'app.service' } as const) : ({ kind, path: dir.join('pid') } as const);
    const context = driverContext({ programPath: stub.programPath });
    const kept = createWorkerProcess({ process: { place } }, context);
    assert.ok(kept);
    const found = await kept.find('w');
    assert.ok(found.kind === 'found');
    assert.deepEqual(kept.confirm('w', found.process), found);
    for (const other of [{ pid: found.process.pid + 1 }, { startTicks: found.process.startTicks + 1 }])
      assert.equal(kept.confirm('w', { ...found.process, ...other }).kind, 'dead');
    await worker.kill();
    assert.notEqual(kept.confirm('w', found.process).kind, 'found');
  }

  it('is confirmed by its number and its start time in its pid file, and not once it ended', () =>
    confirmEach('pidFile'));

  it('is confirmed by its number and its start time as it was kept of a unit, and not once it ended', () =>
    confirmEach('unit'));

  it('is not confirmed where none was found', () => {
    const place = { kind: 'unit', unit: 'app.service' } as const;
    const kept = createWorkerProcess({ process: { place } }, driverContext());
    const process = { pid: 7, startTicks: 7, effectiveUid: 0, stopped: 'no' } as const;
    assert.equal(kept?.confirm('w', process).kind, 'dead');
  });
});

describe('the main process of a unit', () => {
  async function findWith(directory: string, script: string, program?: string) {
    writeFileSync(join(directory, 'systemctl'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const place = { kind: 'unit', unit: 'app.service' } as const;
    const context = driverContext({ programPath: `${directory}:${defaultPath}` });
    const options = { process: { place, ...(program === undefined ? {} : { program }) } };
    return (await createWorkerProcess(options, context)?.find('w')) ?? assert.fail('it has a place');
  }
  const shows = (pid: string | number, active = 'active'): string =>
    `printf 'LoadState=loaded\\nActiveState=${active}\\nMainPID=%s\\n' ${pid}`;
  const reasonOf = (found: Awaited<ReturnType<typeof findWith>>): string =>
    found.kind === 'found' ? 'found' : `${found.kind}: ${found.reason}`;

  it('is not known where systemd shows another one a moment later', async () => {
    using dir = tempDir();
    const mark = dir.join('asked');
    const script = `if [ -e ${mark} ]; then ${shows(process.ppid)}; else : > ${mark}; ${shows(process.pid)}; fi`;
    assert.match(reasonOf(await findWith(dir.path, script)), /^unknown: .* its main process changes$/);
  });

  it('is not known where it does not run the program, or where systemctl fails', async () => {
    using dir = tempDir();
    assert.equal((await findWith(dir.path, shows(process.pid))).kind, 'found');
    assert.match(
      reasonOf(await findWith(dir.path, shows(process.pid), 'nginx')),
      /^unknown: .* does not run nginx$/,
    );
    assert.match(
      reasonOf(await findWith(dir.path, `${shows(process.pid)}; exit 1`)),
      /^unknown: .* systemctl cannot show it$/,
    );
  });

  it('is dead with a unit that is inactive or failed, and only then', async () => {
    using dir = tempDir();
    for (const [active, kind] of [
      ['inactive', 'dead'],
      ['failed', 'dead'],
      ['activating', 'unknown'],
    ] as const)
      assert.equal((await findWith(dir.path, shows(0, active))).kind, kind, active);
  });
});

describe('parsePlace', () => {
  it('takes no port that there is not', () => {
    assert.deepEqual(parsePlace('127.0.0.1:65535'), { host: '127.0.0.1', port: 65_535 });
    assert.equal(parsePlace('127.0.0.1:65536'), undefined);
    assert.equal(parsePlace('127.0.0.1'), undefined);
  });
});
