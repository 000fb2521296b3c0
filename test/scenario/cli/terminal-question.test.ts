// The y/N question at a terminal of its own: the default is no, and changes nothing.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/platform/time/clock.js';
import { directoryState } from '../../kit/assert/directory-state.js';
import { writOnTerminal } from '../../kit/cli/on-terminal.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { fleetBench } from '../../kit/fleet/fleet-bench.js';
import { needs } from '../../kit/programs/real-programs.js';
import { makeTeam } from '../../kit/repository/delegated-repository.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';

const oneRootKey = { clock: systemClock, rootKeys: 1, rootThreshold: 1 };

async function prepareGc(dir: TempDir) {
  const repository = sampleRepository(dir, oneRootKey);
  for (const file of ['one', 'two']) await repository.publish({ file });
  const { directory } = repository;
  const args = ['repo', 'gc', '--repository', directory, '--keep', '1', '--grace', '1ms'];
  return { directory, args, question: /Remove 5 files, [^?]*\? \[y\/N\] /, done: /REMOVED.* 5 files/ };
}

function prepareDelegation(dir: TempDir) {
  const { directory, keys } = sampleRepository(dir, oneRootKey);
  const team = makeTeam(dir, 'dns-team');
  const places = ['--repository', directory, '--keys', keys, '--key', `${team.keys}/dns-team.key`];
  const args = ['delegate', 'dns-team', '--paths', 'dns-x/*', ...places];
  return { directory, args, question: /Delegate to dns-team\? \[y\/N\] /, done: /DELEGATED.* dns-team/ };
}

async function prepareRetirement(dir: TempDir) {
  const directory = dir.join('fleet');
  await using bench = await fleetBench(directory, fakeClock());
  const { id, token } = await bench.token();
  await bench.enrol(token, 'web-1');
  const args = ['fleet', 'host', 'retire', '--token', id, '--store', directory];
  return {
    directory,
    args,
    question: /Retire every host of token \w+\? A .+ \[y\/N\] /,
    done: /RETIRED.* 1 host /,
  };
}

const commands = {
  'repo gc': prepareGc,
  delegate: prepareDelegation,
  'fleet host retire': prepareRetirement,
};

describe('a y/N question at a terminal', needs('script', 'bsdutils'), () => {
  for (const [name, prepare] of Object.entries(commands)) {
    it(`lets ${name} continue only after y`, async () => {
      using dir = tempDir();
      const { directory, args, question, done } = await prepare(dir);
      const before = directoryState(directory);
      for (const typed of ['', 'n', 'yess', 'ok']) {
        const run = await writOnTerminal(args, [{ question: '[y/N]', typed }]);
        assert.deepEqual([run.exitCode, run.untyped], [0, 0], run.screen);
        assert.match(run.screen, question);
        assert.match(run.screen, /NOT CHANGED/);
        assert.deepEqual(directoryState(directory), before);
      }
      // Ctrl-C, and Ctrl-D.
      for (const typed of ['\u0003', '\u0004']) {
        const ended = await writOnTerminal(args, [{ question: '[y/N]', typed }]);
        assert.deepEqual([ended.exitCode, ended.untyped], [130, 0], ended.screen);
        assert.match(ended.screen, /INTERRUPTED/);
        assert.deepEqual(directoryState(directory), before);
      }
      const run = await writOnTerminal(args, [{ question: '[y/N]', typed: 'Y' }]);
      assert.equal(run.exitCode, 0, run.screen);
      assert.match(run.screen, done);
      assert.notDeepEqual(directoryState(directory), before);
    });
  }

  it('names the host and its key before a single host is retired', async () => {
    using dir = tempDir();
    const { directory } = await prepareRetirement(dir);
    const args = ['fleet', 'host', 'retire', 'web-1', '--store', directory];
    const declined = await writOnTerminal(args, [{ question: '[y/N]', typed: 'n' }]);
    assert.match(declined.screen, /Retire web-1 \([0-9a-f]{12}\)\? /);
    assert.match(declined.screen, /NOT CHANGED.* web-1/);
    const retired = await writOnTerminal(args, [{ question: '[y/N]', typed: 'y' }]);
    assert.match(retired.screen, /RETIRED.* web-1 /);
  });
});
