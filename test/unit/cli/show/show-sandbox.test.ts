import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sandboxLines } from '../../../../src/cli/show/show-sandbox.js';

describe('the line about the sandbox', () => {
  it('names the bounds that are in force', () => {
    const on = { mode: 'required', state: 'on', memory: 'each-process' } as const;
    assert.deepEqual(
      sandboxLines({ ...on, user: 'nobody', userNamespace: 'yes', processes: 'each-command' }),
      ['  sandbox   on; commands run as nobody; memory bounded per process, processes per command'],
    );
    assert.deepEqual(sandboxLines({ ...on, user: 'nobody', userNamespace: 'no', processes: 'each-user' }), [
      '  sandbox   on; commands run as nobody, without a user namespace; memory bounded per process, processes per user',
    ]);
    const [line = ''] = sandboxLines({ ...on, user: 'agent', userNamespace: 'yes', memory: 'each-command' });
    assert.match(line, /run as the agent's user; memory bounded per command/);
  });

  it('prints the effect of a missing, unusable or disabled sandbox', () => {
    const reason = 'bwrap not found';
    assert.deepEqual(sandboxLines({ mode: 'auto', state: 'missing', reason }), [
      '  sandbox   missing (bwrap not found): commands run as the agent',
    ]);
    assert.deepEqual(sandboxLines({ mode: 'required', state: 'unusable', reason: 'no' }), [
      '  sandbox   unusable (no): no command is run',
    ]);
    assert.deepEqual(sandboxLines({ mode: 'off', state: 'off' }), [
      '  sandbox   off: commands run as the agent',
    ]);
  });

  it('is omitted when no agent has tested the sandbox', () => {
    assert.deepEqual(sandboxLines(undefined), []);
    assert.deepEqual(sandboxLines({ mode: 'auto', state: 'unknown' }), []);
  });
});
