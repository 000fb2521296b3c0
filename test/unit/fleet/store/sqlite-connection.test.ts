// Threads of a connection of the embedded store: what holds the process, and which end of which thread counts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { SqliteConnection } from '../../../../src/fleet/store/sqlite-connection.js';
import { memory, type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

/** @returns a connection, the thread that was started last, and the reasons of its ends */
function connect(dir: TempDir) {
  const threads: Worker[] = [];
  const note = (worker: Worker): void => void threads.push(worker);
  process.on('worker', note);
  const ends: string[] = [];
  const connection = new SqliteConnection({ path: dir.join('s.db'), busyTimeoutMs: 1000 }, (reason) =>
    ends.push(reason),
  );
  const thread = async (): Promise<Worker> => {
    await connection.executeQuery(one);
    const last = threads.at(-1);
    assert.ok(last);
    return last;
  };
  const close = async (): Promise<void> => {
    await connection.close();
    await Promise.all(threads.map((worker) => worker.terminate()));
    process.off('worker', note);
  };
  return { connection, thread, ends, close };
}

const one = { sql: 'select 1 as one', parameters: [] };

describe('a connection of the embedded store', () => {
  it('holds the process until the last statement has its answer', async () => {
    using dir = tempDir(memory());
    const { connection, thread, close } = connect(dir);
    const worker = await thread();
    const holds: string[] = [];
    worker.ref();
    const kept = { ref: worker.ref, unref: worker.unref };
    Object.assign(worker, { ref: () => holds.push('ref'), unref: () => holds.push('unref') });
    await Promise.all(Array.from({ length: 5 }, () => connection.executeQuery(one)));
    Object.assign(worker, kept);
    assert.deepEqual(holds, ['ref', 'unref']);
    await close();
  });

  it('is lost once where its thread fails and then exits, and not by an exit behind its restart', async () => {
    using dir = tempDir(memory());
    const { connection, thread, ends, close } = connect(dir);
    const first = await thread();
    first.emit('error', new Error('it failed'));
    first.emit('exit', 1);
    assert.deepEqual([ends, connection.isLost], [['it failed'], true]);
    connection.restart();
    first.emit('exit', 1);
    assert.deepEqual([ends.length, connection.isLost], [1, false]);
    assert.deepEqual((await connection.executeQuery(one)).rows, [{ one: 1 }]);
    await close();
  });

  it('is not lost where it was closed: no statement starts a thread again', async () => {
    using dir = tempDir(memory());
    const { connection, close } = connect(dir);
    await close();
    assert.equal(connection.isLost, false);
  });
});
