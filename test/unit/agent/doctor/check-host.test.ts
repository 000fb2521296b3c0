import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type AgentFactsSeen,
  judgeAgent,
  judgeConfiguration,
  judgeState,
  type StateFacts,
} from '../../../../src/agent/doctor/check-host.js';
import { chooseServiceCommands } from '../../../../src/core/status/agent-service.js';

const GB = 1e9;
const free = { bytes: 41 * GB, inodes: 1e6, totalInodes: 2e6, blockBytes: 4096, totalBytes: 100 * GB };
const mistake = {
  code: 'CONFIG_INVALID',
  line: 3,
  column: 5,
  pointer: '/bundles/0',
  text: 'has no check',
} as const;

describe('#judgeConfiguration', () => {
  const path = '/etc/writ/agent.yaml';

  it('returns ok without a mistake', () => {
    assert.deepEqual(judgeConfiguration({ path, warnings: [] }), {
      state: 'ok',
      text: `${path}: no mistake`,
    });
  });

  it('warns with the line of the first warning and the number of warnings', () => {
    const { state, text, next } = judgeConfiguration({ path, warnings: [mistake, mistake] });
    assert.deepEqual([state, next], ['warn', 'writ config check']);
    assert.equal(text, `${path}:3:5 /bundles/0: has no check (2 in all)`);
  });

  it('fails with the code, the first mistake and the number of the others', () => {
    const message = `${path} has 3 mistakes:\n  1:1 a\n  2:1 b\n  3:1 c`;
    const judged = judgeConfiguration({
      path,
      warnings: [],
      error: { code: 'CONFIG_INVALID', message, hint: '' },
    });
    assert.deepEqual([judged.state, judged.code], ['FAIL', 'CONFIG_INVALID']);
    assert.equal(judged.text, `${path} has 3 mistakes: 1:1 a (and 2 more)`);
  });
});

describe('#judgeState, for a state directory', () => {
  const whole: StateFacts = { path: '/var/lib/writ', presence: 'there', needBytes: 2 * GB, free };
  const cases: readonly (readonly [string, Partial<StateFacts>, string, RegExp])[] = [
    ['with enough free space', {}, 'ok', /flushing works, 41.0 GB free$/],
    ['not created yet', { presence: 'absent' }, 'ok', /created at the first start/],
    [
      'with less free space than the largest release needs',
      { free: { ...free, bytes: GB } },
      'warn',
      /1\.0 GB free.*2\.0 GB/,
    ],
    [
      'with less free space than any release needs',
      { free: { ...free, bytes: 1e6 } },
      'FAIL',
      /1\.0 MB free/,
    ],
    ['without inodes', { free: { ...free, inodes: 12 } }, 'FAIL', /12 inodes free/],
    [
      'on a file system that creates inodes on demand',
      { free: { ...free, inodes: 0, totalInodes: 0 } },
      'ok',
      /free$/,
    ],
    ['not writable for this user', { notWritable: 'EACCES' }, 'warn', /this user/],
    ['read-only', { notWritable: 'EROFS' }, 'FAIL', /EROFS/],
    ['that cannot be flushed', { flushFailed: 'Input/output error' }, 'FAIL', /Input\/output error/],
  ];
  for (const [what, facts, state, text] of cases) {
    it(`${what}: ${state}`, () => {
      const judged = judgeState({ ...whole, ...facts });
      assert.equal(judged.state, state);
      assert.match(judged.text, text);
      assert.equal(judged.next === undefined, state === 'ok');
    });
  }

  it('fails with PATH_UNSAFE if other users can change it', () => {
    const unsafe = { code: 'PATH_UNSAFE', message: '/var can be changed by others', hint: 'chmod' };
    const { state, code } = judgeState({ ...whole, unsafe });
    assert.deepEqual([state, code], ['FAIL', 'PATH_UNSAFE']);
  });
});

describe('#judgeAgent', () => {
  const service = chooseServiceCommands('installed');
  const running: AgentFactsSeen = {
    service,
    socket: '/run/writ/agent.sock',
    state: 'run',
    versions: { agent: '1.0.0', own: '1.0.0' },
  };
  const own = { own: '1.0.0' };
  const noAgent = { socket: '/s', versions: own, service };

  it('returns ok if the agent answers', () => {
    assert.equal(judgeAgent(running).state, 'ok');
  });

  it('reports status.json with its age to a user without access to the socket', () => {
    const { state, text } = judgeAgent({ ...running, ageMs: 60_000 });
    assert.deepEqual([state, text], ['ok', 'state run, by status.json, 60 s old']);
    const contactFailure = { code: 'AGENT_UNREACHABLE', message: 'no listener', hint: 'check' };
    assert.equal(judgeAgent({ ...running, ageMs: 60_000, contactFailure }).state, 'warn');
  });

  it('warns, and does not fail, if the user may not read the status', () => {
    const { state, text, next } = judgeAgent({ ...noAgent, unknown: 'denied' });
    assert.deepEqual(
      [state, text, next],
      [
        'warn',
        'could not be checked: denied',
        process.geteuid?.() === 0 ? 'writ status' : 'sudo writ doctor',
      ],
    );
  });

  it('warns if no agent runs, or one of another version', () => {
    const none = judgeAgent({ ...running, state: 'stop', versions: own });
    assert.deepEqual([none.state, none.next], ['warn', 'sudo systemctl start writ-agent']);
    const old = judgeAgent({ ...running, versions: { agent: '0.9.0', own: '1.0.0' } });
    assert.deepEqual([old.state, old.next], ['warn', 'sudo systemctl restart writ-agent']);
  });

  it('advises to start the program if its unit is not installed', () => {
    const bare = { ...running, service: chooseServiceCommands('absent') };
    assert.equal(judgeAgent({ ...bare, state: 'stop' }).next, 'writ agent');
    const old = judgeAgent({ ...bare, versions: { agent: '0.9.0', own: '1.0.0' } });
    assert.doesNotMatch(String(old.next), /systemctl/);
  });

  it('names the process that holds the lock in place of the agent', () => {
    const { state, text } = judgeAgent({ ...noAgent, lockHolder: 'pull (pid 12)' });
    assert.equal(state, 'warn');
    assert.match(text, /pull \(pid 12\)/);
  });

  it('fails if the agent runs and does not answer', () => {
    const error = {
      code: 'AGENT_UNREACHABLE',
      message: 'it sent nothing for 10 s',
      hint: 'sudo systemctl status writ-agent',
    };
    const { state, code, next } = judgeAgent({ ...noAgent, error });
    assert.deepEqual([state, code, next], ['FAIL', 'AGENT_UNREACHABLE', error.hint]);
  });
});
