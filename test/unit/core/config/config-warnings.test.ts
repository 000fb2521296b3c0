// Warnings of a configuration that depend on the process identity of a group.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigFile } from '../../../../src/core/config/config-schema.js';
import { configWarnings } from '../../../../src/core/config/config-warnings.js';

const reset = { run: ['ctl'], unreachable: { match: 'away' } };

/** Pointers of the text conditions that the warning names. */
function textOnlyExcuses(worker: object): string[] {
  const file = { bundles: [], workers: [{ name: 'd', uses: ['b'], ...worker }] } as unknown as ConfigFile;
  const found = configWarnings(file, { verdicts: ['true'], areProcessesUnknown: [false] }, undefined);
  return found.filter(({ text }) => text.includes('its text alone')).map(({ path }) => path.join('/'));
}

describe('the warning about `unreachable.match` without another condition', () => {
  for (const process of [{ unit: 'd.service' }, { pidFile: '/run/d.pid' }])
    it(`is not given when the group has a process, which shows whether its daemon runs: ${JSON.stringify(process)}`, () =>
      assert.deepEqual(textOnlyExcuses({ process, reset }), []));

  it('is given without a process', () => {
    const place = ['workers/0/reset/unreachable/match'];
    assert.deepEqual(
      [textOnlyExcuses({ reset }), textOnlyExcuses({ process: 'none', reset })],
      [place, place],
    );
  });

  it('is given for a hook, because its pid file is not the one of the group', () => {
    const worker = { process: { unit: 'd.service' }, load: reset, reset };
    assert.deepEqual(textOnlyExcuses(worker), ['workers/0/load/unreachable/match']);
  });
});
