// The commands that change a host, and the exit code of a command with a lost answer.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer } from '../../../../src/cli/console/command.js';
import type { CommonFlags } from '../../../../src/cli/console/flags.js';
import {
  exitCodeOfLostAnswer,
  lostAnswerWarning,
  onlyAnswers,
} from '../../../../src/cli/console/lost-answer.js';
import { commands } from '../../../../src/cli/run.js';
import { longCase } from '../../../kit/assert/long-case.js';

const flags: CommonFlags = { color: 'never', input: false } as unknown as CommonFlags;
const answer: Answer = { outcome: 'done', details: {}, lines: ['DONE'] };

describe('a command', () => {
  it('changes nothing if it is one of these', longCase, async () => {
    const loaded = await Promise.all(
      commands.map(async ({ name, load }) => ({ name, ...(await load()).command })),
    );
    const answering = loaded.filter((one) => onlyAnswers(one, [], flags)).map(({ name }) => name);
    assert.deepEqual(answering, [
      ...['inspect', 'repo status', 'key list', 'key show', 'repo log', 'repo check'],
      ...['fleet status', 'fleet hosts', 'fleet host', 'fleet history', 'fleet wait', 'fleet log'],
      ...['status', 'health', 'doctor', 'history', 'diff', 'refusals', 'verify'],
      ...['check', 'config show', 'config check'],
    ]);
  });

  it('that changes the host only with an argument or flag changes nothing without it', async () => {
    const cases: readonly (readonly [string, readonly string[], object, boolean])[] = [
      ['refusals', ['forget'], {}, false],
      ['verify', [], { repair: true }, false],
      ['fleet host', ['approve', 'web-1'], {}, false],
      ['fleet host', ['web-1'], {}, true],
      ['fleet token', ['list'], {}, true],
      ['fleet token', ['revoke', 'id'], {}, false],
      ['publish', ['source'], { dryRun: true }, true],
    ];
    for (const [name, args, more, expected] of cases) {
      const definition = await commands.find((one) => one.name === name)?.load();
      assert.ok(definition, name);
      assert.equal(onlyAnswers(definition.command, args, { ...flags, ...more }), expected, name);
    }
  });
});

describe('the exit code of a lost answer', () => {
  const lost = (more: Partial<Parameters<typeof exitCodeOfLostAnswer>[0]>): number =>
    exitCodeOfLostAnswer({ answer, exitCode: 0, isOnlyAnswer: true, failureExitCode: undefined, ...more });

  it('is 1 for a command that changes nothing, or its own code of a failure', () => {
    assert.equal(lost({}), 1);
    assert.equal(lost({ failureExitCode: 3 }), 3);
  });

  it('is the own code of a command that changed or found something', () => {
    assert.equal(lost({ isOnlyAnswer: false }), 0);
    assert.equal(lost({ isOnlyAnswer: false, exitCode: 130 }), 130);
    assert.equal(lost({ exitCode: 2 }), 2);
  });

  it('is 1 for an answer that lasts until its reader ends, as that of status --watch', () => {
    assert.equal(lost({ exitCode: 130 }), 1);
  });

  it('is 1 when the answer contains a value that is shown only once', () => {
    assert.equal(lost({ isOnlyAnswer: false, answer: { ...answer, kept: ['Passphrase  abc'] } }), 1);
  });
});

describe('the warning of a lost answer', () => {
  it('names the cause, unless the reader closed the pipe', () => {
    assert.deepEqual(lostAnswerWarning({ lines: 1, code: 'ENOSPC' }), [
      '1 line of the answer could not be written (ENOSPC)',
    ]);
    assert.deepEqual(lostAnswerWarning({ lines: 2, code: 'EPIPE' }), []);
  });
});
