// Detection of changes in a candidate while commands judge it, if a retained tree is no directory any more.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { watchCandidate } from '../../../../src/agent/checks/watch-candidate.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const takers: Readonly<Record<string, (path: string, outside: string) => void>> = {
  'a file': (path) => fs.writeFileSync(path, 'x'),
  'a FIFO': (path) => void execFileSync('mkfifo', [path]),
  'a link to a directory of others': (path, outside) => fs.symlinkSync(outside, path),
  nothing: () => undefined,
};

describe('a candidate with a replaced tree', () => {
  for (const [name, take] of Object.entries(takers)) {
    it(`by ${name} is compared, without the files elsewhere`, async () => {
      using dir = tempDir();
      const [candidatePath, treePath, outside] = [
        dir.join('candidate'),
        dir.join('tree'),
        dir.join('outside'),
      ];
      for (const path of [candidatePath, outside]) fs.mkdirSync(path);
      take(treePath, outside);
      const changes = await watchCandidate({
        candidatePath,
        bundles: [{ config: { name: 'dns' }, treePath }],
      });
      fs.writeFileSync(`${outside}/theirs`, 'x');
      assert.deepEqual([...(await changes())], []);
      fs.rmSync(treePath, { force: true });
      fs.mkdirSync(treePath);
      assert.equal((await changes()).get('dns')?.code, 'CANDIDATE_CHANGED');
    });
  }
});
