// A fetch that is killed or fails at each of its operations on the disk, and the next fetch: it always completes the archive.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { sweepPartials } from '../../../../src/agent/partials/partials.js';
import { fetchArchive } from '../../../../src/agent/staging/fetch-archive.js';
import { isWritError, WritError } from '../../../../src/core/errors.js';
import { createDurableFs, type OperationObserver } from '../../../../src/platform/disk/durable-fs.js';
import { Killed, type OperationTrap, operationTrap } from '../../../kit/disk/operation-trap.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { archive, fetchBench } from '../../../kit/host/fetch-bench.js';
import { memorySource } from '../../../kit/repository/memory-source.js';

const seen = { location: 'https://a/', etag: '"v1"' };
const busy = (): WritError => new WritError('SERVER_BUSY', 'no more');

/** A fetch that receives wrong bytes, is cut, continues, restarts and completes: it does each operation at least once. */
async function fetchWithFaults(dir: TempDir, observer: OperationObserver): Promise<void> {
  const durable = createDurableFs(observer);
  const { options } = fetchBench(dir, durable);
  const wrong = Buffer.alloc(archive.length, 1);
  const cut = memorySource(wrong, [{ bytes: 60_000, error: busy(), seen }]);
  await fetchArchive({ ...options, client: cut }).catch((error: unknown) => {
    if (!isWritError(error) || error.code !== 'SERVER_BUSY') throw error;
  });
  await fetchArchive({
    ...options,
    client: memorySource(archive, [{ begins: 'start', bytes: 30_000 }, { seen }]),
  });
}

/** Asserts that the next start and the next run complete the archive. */
async function assertFetchCompletes(dir: TempDir): Promise<void> {
  fs.rmSync(dir.join('staging'), { recursive: true });
  const { options, partials } = fetchBench(dir);
  sweepPartials(options.partials);
  const client = memorySource(archive);
  const { path } = await fetchArchive({ ...options, client });
  assert.deepEqual(fs.readFileSync(path), archive);
  sweepPartials(options.partials);
  assert.deepEqual(fs.readdirSync(partials), []);
  assert.ok(client.offsets.length <= 2);
}

async function fetchOperations(): Promise<string[]> {
  using dir = tempDir();
  const { seen: operations, ...trap } = operationTrap();
  await fetchWithFaults(dir, trap);
  return operations;
}

describe('a fetch that continues a partial download', () => {
  it('succeeds after a kill before or after each of its operations', async () => {
    const operations = await fetchOperations();
    for (const label of ['partial.note:write', 'partial.time', 'fetch.archive:restart', 'fetch.archive:link'])
      assert.ok(operations.includes(label), label);
    for (const index of operations.keys()) {
      for (const when of ['before', 'after'] as const) {
        using dir = tempDir();
        const trap: OperationTrap = operationTrap();
        trap.arm(index, when);
        await assert.rejects(fetchWithFaults(dir, trap), Killed);
        await assertFetchCompletes(dir);
      }
    }
  });

  it('succeeds after a disk failure of each of its operations, once or repeated', async () => {
    const operations = await fetchOperations();
    for (const index of operations.keys()) {
      for (const last of [index, Number.POSITIVE_INFINITY]) {
        using dir = tempDir();
        let at = -1;
        const before = (): void => {
          at += 1;
          if (at >= index && at <= last) throw Object.assign(new Error('bad disk'), { code: 'EIO' });
        };
        await fetchWithFaults(dir, { before }).catch((error: unknown) => {
          if (!isWritError(error) || error.code !== 'DISK_FAILED') throw error;
        });
        await assertFetchCompletes(dir);
      }
    }
  });
});
