// What must hold of any store, on the embedded one; test/exhaustive/fleet has the same on PostgreSQL.
import { after, describe } from 'node:test';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { storeCases } from '../../kit/fleet/cases/store-cases.js';

describe('a fleet in a directory', () => {
  const directory = tempDir(memory());
  let stores = 0;
  after(() => directory[Symbol.dispose]());
  storeCases(() => directory.join(`store-${++stores}`), 20);
});
