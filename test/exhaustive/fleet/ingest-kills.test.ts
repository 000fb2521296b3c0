// kill -9 of an ingest amid its batches; ingest-kills-postgres has the same on the other store.
import { describe, it } from 'node:test';
import { sampled } from '../../kit/assert/sample.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { killDelaysMs, killRounds } from './kill-rounds.js';

describe('an ingest that is killed', () => {
  it('loses no report that it acknowledged', { timeout: 600_000 }, async () => {
    using directory = tempDir();
    await killRounds(directory.join('store'), sampled(killDelaysMs));
  });
});
