// What must hold of any store, on the embedded one; test/exhaustive/fleet has the same on PostgreSQL. Of the cases, which the kit
// has, test/mutations names 'holds against a replay all the same', 'bounds the outcomes of a host that begins with the greatest number',
// 'never lowers the counter of its host when it is written after a newer report' 'is none when it has a new outcome: the outcome is stored',
// 'has an outcome once, however often it is reported', 'keeps the newest 500 of a host: the older ones are merged by release and day',
// 'ends when a host is retired, and is forgotten 90 days later', 'is read in pages, each interval once, also where many began at one moment'
// 'begins the history of a store of 0.1.0 with what its hosts run and refuse', 'ends for all hosts of a token, and no others', 'is in one state in every count, list and sentence',
// 'is named in the sentence about it, where at most three hosts are in its state',
// 'that is taken keeps the host waiting only until it reports a free name, and not before it was accepted' and
// 'is critical for the fleet while it is for itself, with its code and name'.
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
