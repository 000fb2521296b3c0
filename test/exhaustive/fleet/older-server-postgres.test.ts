// An older server that runs on beside a newer one, on a real PostgreSQL, where both write at the same time.
import { after, before, describe } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { newerCases } from '../../kit/fleet/cases/newer-cases.js';
import { needsPostgres, type RunningPostgres, startPostgres } from '../../kit/fleet/real-postgres.js';

describe('a PostgreSQL that a newer version takes over', needsPostgres(), () => {
  const directory = tempDir();
  let postgres: RunningPostgres;
  before(async () => {
    postgres = await startPostgres(directory.path);
  });
  after(async () => {
    await postgres[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  });
  newerCases(() => postgres.newDatabase());
});
