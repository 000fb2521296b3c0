import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { openProvenManifest } from '../../../../src/agent/generations/proven-manifests.js';
import { manifestFile, readRecord, releasePath } from '../../../../src/agent/generations/release-records.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

interface Active {
  readonly test: TestHost;
  readonly path: string;
  readonly open: () => ReturnType<typeof openProvenManifest>;
}

async function active(): Promise<Active & Disposable> {
  const test = testHost({ bundles: [{ name: 'dns-edge' }] });
  await test.publish('dns-edge', { 'a.yaml': 'a: 1\n' }, { serial: 1 });
  await test.pull();
  const { paths } = test.host;
  const [name = ''] = fs.readdirSync(join(paths.archives, 'dns-edge'));
  const { digest } = readRecord(paths, 'dns-edge', name).release.manifest;
  return {
    test,
    path: join(releasePath(paths, 'dns-edge', name), manifestFile),
    open: () => openProvenManifest(paths, 'dns-edge', name, digest),
    [Symbol.dispose]: () => test[Symbol.dispose](),
  };
}

/** @returns how often files with this name were opened while it ran */
function opened(t: TestContext, name: string, act: () => unknown): number {
  const real = createRequire(import.meta.url)('node:fs') as typeof fs;
  const { mock } = t.mock.method(real, 'openSync');
  syncBuiltinESMExports();
  try {
    act();
    return mock.calls.filter(({ arguments: [path] }) => String(path).endsWith(name)).length;
  } finally {
    mock.restore();
    syncBuiltinESMExports();
  }
}

const turned = (bytes: Buffer): Buffer => {
  bytes.writeUInt8(bytes.readUInt8(20) ^ 1, 20);
  return bytes;
};

describe('a verified manifest', () => {
  it('is not read again while the file is the same, and is read at an access to its rows', async (t) => {
    using host = await active();
    host.open();
    assert.equal(opened(t, manifestFile, host.open), 0);
    const rows = host.open();
    assert.equal(
      opened(t, manifestFile, () =>
        assert.deepEqual(
          rows.parsed().files.map(({ path }) => path),
          ['a.yaml'],
        ),
      ),
      1,
    );
  });

  it('is read again and verified after it was written, replaced or moved', async () => {
    using host = await active();
    const right = fs.readFileSync(host.path);
    const wrong = turned(Buffer.from(right));
    // A process can set the modification time back, but only the kernel sets the change time.
    const setTime = (): void => fs.utimesSync(host.path, 1e9, 1e9);
    const changes = [
      () => fs.writeFileSync(host.path, wrong),
      () => {
        fs.writeFileSync(`${host.path}.new`, wrong);
        fs.renameSync(`${host.path}.new`, host.path);
      },
      () => {
        fs.rmSync(host.path);
        fs.writeFileSync(host.path, wrong);
      },
    ];
    for (const harm of changes) {
      setTime();
      host.open();
      harm();
      setTime();
      for (const _ of [1, 2]) throwsCode('STATE_DAMAGED', host.open);
      fs.writeFileSync(host.path, right);
    }
    host.open();
    fs.rmSync(host.path);
    throwsCode('STATE_DAMAGED', host.open);
  });

  it('is verified again before a row is used, if its bytes changed without a trace', async (t) => {
    using host = await active();
    host.open();
    const rows = host.open();
    const real = createRequire(import.meta.url)('node:fs') as typeof fs;
    const read = real.readSync as (...args: unknown[]) => number;
    // Simulates a disk that returns other bytes than were written.
    t.mock.method(real, 'readSync', (...args: unknown[]) => {
      const count = read(...args);
      const [, chunk] = args as [number, Buffer];
      if (count > 20 && chunk.subarray(0, count).includes('a.yaml')) turned(chunk);
      return count;
    });
    syncBuiltinESMExports();
    throwsCode('STATE_DAMAGED', rows.parsed);
    // The next cycle verifies again and finds the damage, so that it can repair it.
    throwsCode('STATE_DAMAGED', host.open);
    t.mock.restoreAll();
    syncBuiltinESMExports();
    host.open();
  });
});

describe('a cycle without a change', () => {
  it('reads the manifest once in a process, and again after the file was changed', async (t) => {
    using host = await active();
    await host.test.pull();
    const calls = { count: 0 };
    const real = createRequire(import.meta.url)('node:fs') as typeof fs;
    const open = real.openSync;
    t.mock.method(real, 'openSync', (...args: Parameters<typeof open>) => {
      if (String(args[0]).endsWith(manifestFile)) calls.count += 1;
      return open(...args);
    });
    syncBuiltinESMExports();
    await host.test.pull();
    assert.equal(calls.count, 0);
    fs.writeFileSync(host.path, turned(fs.readFileSync(host.path)));
    const result = await host.test.pull();
    t.mock.restoreAll();
    syncBuiltinESMExports();
    assert.ok(calls.count > 0);
    assert.notEqual(result.outcome, 'unchanged');
  });
});
