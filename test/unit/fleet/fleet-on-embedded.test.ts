// What must hold of any store, on the embedded one; test/exhaustive/fleet has the same on PostgreSQL. Of the cases, which the kit
// has, test/mutations.json names 'holds against a replay all the same', 'bounds the outcomes of a host that begins with the greatest number',
// 'never lowers the counter of its host when it is written after a newer report' and 'is none when it has a new outcome: the outcome is stored'.
import { after, describe } from 'node:test';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { newerCases } from '../../kit/fleet/cases/newer-cases.js';
import { storeCases } from '../../kit/fleet/cases/store-cases.js';

describe('a fleet in a directory', () => {
  const directory = tempDir(memory());
  let stores = 0;
  after(() => directory[Symbol.dispose]());
  const newLocation = (): string => directory.join(`store-${++stores}`);
  storeCases(newLocation, 20);
  newerCases(newLocation);
});
