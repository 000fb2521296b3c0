// kill -9 of an ingest amid its batches, on a real PostgreSQL.
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needsPostgres, startPostgres } from '../../kit/fleet/real-postgres.js';
import { killDelaysMs, killRounds } from './kill-rounds.js';

describe('an ingest on PostgreSQL that is killed', () => {
  it('loses no report that it acknowledged', { timeout: 600_000, ...needsPostgres() }, async () => {
    using directory = tempDir();
    await using postgres = await startPostgres(directory.path);
    await killRounds(await postgres.newDatabase(), killDelaysMs);
  });
});
