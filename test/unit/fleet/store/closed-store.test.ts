import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SqliteConnection } from '../../../../src/fleet/store/sqlite-connection.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const slow =
  'with recursive n(x) as (select 1 union all select x + 1 from n where x < 20000) select max(x) as last from n';

describe('a connection of the embedded store that is closed', () => {
  it('answers the statements before, for one that is ended from outside aborts the process', async () => {
    using dir = tempDir();
    const connection = new SqliteConnection({ path: dir.join('s.db'), busyTimeoutMs: 1000 }, () =>
      assert.fail('it did not end by itself'),
    );
    const statement = { sql: slow, parameters: [] };
    const answers = Array.from({ length: 20 }, () => connection.executeQuery<{ last: number }>(statement));
    await connection.close();
    assert.deepEqual(
      (await Promise.all(answers)).map(({ rows }) => rows[0]?.last),
      answers.map(() => 20_000),
    );
    await assert.rejects(connection.executeQuery(statement), { code: 'FLEET_STORE_UNREACHABLE' });
    await connection.close();
  });

  it('starts no thread if it never ran a statement', async () => {
    using dir = tempDir();
    const started: unknown[] = [];
    const note = (worker: unknown) => started.push(worker);
    process.on('worker', note);
    const connection = new SqliteConnection({ path: dir.join('s.db'), busyTimeoutMs: 1000 }, () => undefined);
    await connection.close();
    process.off('worker', note);
    assert.deepEqual(started, []);
    const statement = { sql: 'select 1', parameters: [] };
    await assert.rejects(connection.executeQuery(statement), { code: 'FLEET_STORE_UNREACHABLE' });
  });
});

describe('the dialect of the embedded store', () => {
  it('keeps libsql loaded when its threads have ended, because threads of libsql itself still run in it', () => {
    // Runs in a separate process, because other tests load libsql in this one.
    const sharedObjects = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
      encoding: 'utf8',
    });
    assert.match(sharedObjects, /libsql/);
  });
});

const dialectUrl = new URL('../../../../src/fleet/store/sqlite-dialect.js', import.meta.url);
const threadPath = fileURLToPath(new URL('../../../../src/fleet/store/sqlite-thread.js', import.meta.url));
const script = `
  import { once } from 'node:events';
  import { Worker } from 'node:worker_threads';
  import { sqliteDialect } from '${dialectUrl}';
  await sqliteDialect({ path: '', busyTimeoutMs: 1 }, {}).createDriver().init();
  const worker = new Worker('${threadPath}', { workerData: {}, execArgv: [] });
  worker.postMessage('end');
  await once(worker, 'exit');
  console.log(process.report.getReport().sharedObjects.join(' '));
`;
