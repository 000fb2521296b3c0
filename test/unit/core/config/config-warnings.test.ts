// Warnings of a configuration that depend on the process of a group.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigFile } from '../../../../src/core/config/config-schema.js';
import { warningsOf } from '../../../../src/core/config/config-warnings.js';

const reset = { run: ['ctl'], unreachable: { match: 'away' } };

/** Pointers of the texts that excuse a no by words alone. */
function wordsAlone(worker: object): string[] {
  const file = { bundles: [], workers: [{ name: 'd', uses: ['b'], ...worker }] } as unknown as ConfigFile;
  const found = warningsOf(file, { verdicts: ['true'], areUnseen: [false] }, undefined);
  return found.filter(({ text }) => text.includes('words alone')).map(({ path }) => path.join('/'));
}

describe('a warning of a no that words alone excuse', () => {
  for (const process of [{ unit: 'd.service' }, { pidFile: '/run/d.pid' }])
    it(`is not given where the process of the group says whether its daemon lives: ${JSON.stringify(process)}`, () =>
      assert.deepEqual(wordsAlone({ process, reset }), []));

  it('is given without a process', () => {
    const place = ['workers/0/reset/unreachable/match'];
    assert.deepEqual([wordsAlone({ reset }), wordsAlone({ process: 'none', reset })], [place, place]);
  });

  it('is given for a hook, whose pid file is its own', () => {
    const worker = { process: { unit: 'd.service' }, load: reset, reset };
    assert.deepEqual(wordsAlone(worker), ['workers/0/load/unreachable/match']);
  });
});
