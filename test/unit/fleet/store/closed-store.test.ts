import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
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
});
