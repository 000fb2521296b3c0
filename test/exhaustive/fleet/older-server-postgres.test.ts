// An older server that runs on beside a newer one, on a real PostgreSQL, where both write at the same time.
import { after, before, describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { countsWhatIsBeingWritten, newerCases } from '../../kit/fleet/cases/newer-cases.js';
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

  // By a name of its own, which test/mutations finds in this file.
  it('counts what an older server is writing at that moment', async () => {
    await countsWhatIsBeingWritten(await postgres.newDatabase());
  });
});
