// Log lines in the form that a log collector gets: JSON on stderr, each written before the next statement runs.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runNodeScript } from '../../../kit/cli/child-script.js';

async function linesOf(script: string): Promise<{ lines: Record<string, unknown>[]; stdout: string }> {
  const result = await runNodeScript(
    `const { createLog } = await import(at('src/platform/telemetry/log.js'));${script}`,
  );
  assert.notEqual(result.kind, 'not-started');
  const { stdout, stderr } = result as { stdout: string; stderr: string };
  return {
    lines: stderr
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
    stdout,
  };
}

describe('createLog', () => {
  it('writes JSON lines with name, time and fields to stderr, and nothing to stdout', async () => {
    const { lines, stdout } = await linesOf(`createLog('agent', 'info').info({ cycle: 'c-1' }, 'swapped');`);
    assert.equal(stdout, '');
    const [line] = lines;
    assert.equal(line?.['name'], 'agent');
    assert.equal(line?.['cycle'], 'c-1');
    assert.equal(line?.['msg'], 'swapped');
    assert.match(String(line?.['time']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  it('leaves out lines below its level', async () => {
    const { lines } = await linesOf(
      `const log = createLog('agent', 'warn'); log.info('no'); log.warn('yes');`,
    );
    assert.deepEqual(
      lines.map((line) => line['msg']),
      ['yes'],
    );
  });

  it('has written the last line when the process is killed right after it', async () => {
    const { lines } = await linesOf(
      `createLog('agent', 'info').info('last'); process.kill(process.pid, 'SIGKILL');`,
    );
    assert.equal(lines.at(-1)?.['msg'], 'last');
  });
});

describe('an error in the log', () => {
  const logged = async (error: string, level = 'info'): Promise<Record<string, unknown>> => {
    const { lines } = await linesOf(
      `const { WritError } = await import(at('src/core/errors.js'));
       createLog('agent', '${level}').warn({ err: ${error} }, 'failed');`,
    );
    return lines[0]?.['err'] as Record<string, unknown>;
  };
  const named = `new WritError('DISK_FULL', 'no room', { facts: { path: '/x' }, cause: new Error('ENOSPC') })`;

  it('with a code has its facts and its hint, and no stack', async () => {
    const { code, message, facts, hint, stack } = await logged(named);
    assert.deepEqual([code, message, facts], ['DISK_FULL', 'no room: ENOSPC', { path: '/x' }]);
    assert.ok(String(hint).length > 0);
    assert.equal(stack, undefined);
  });

  it('has its stack at level debug, and if it is INTERNAL', longCase, async () => {
    for (const [error, level] of [
      [named, 'debug'],
      [`new TypeError('x')`, 'info'],
      [`new WritError('INTERNAL', 'x')`, 'info'],
    ] as const)
      assert.match(String((await logged(error, level))['stack']), /\n {4}at /, error);
  });
});

describe('a log for people', longCase, () => {
  it('has text lines in place of JSON, for both kinds of log', async () => {
    for (const kind of ['createLog', 'createBusyLog']) {
      const result = await runNodeScript(
        `const log = await import(at('src/platform/telemetry/log.js'));
         log.${kind}('agent', 'info', 'lines').warn({ cycle: 'c-1' }, 'swapped');`,
      );
      const { stderr = '' } = result as { stderr?: string };
      assert.match(stderr, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ {2}warn {3}swapped {2}cycle=c-1\n$/, kind);
    }
  });
});

describe('createBusyLog', () => {
  const script = (end: string): string =>
    `const { createBusyLog } = await import(at('src/platform/telemetry/log.js'));
     const log = createBusyLog('server', 'info'); log.info('first'); log.info({ status: 304 }, 'last'); ${end}`;
  const messagesOf = ({ lines }: { lines: Record<string, unknown>[] }): unknown[] =>
    lines.map(({ msg, name, status }) => [msg, name, status]);

  it('has written each line when the process exits for any reason', async () => {
    const all = [
      ['first', 'server', undefined],
      ['last', 'server', 304],
    ];
    for (const end of ['', 'process.exit(3);'])
      assert.deepEqual(messagesOf(await linesOf(script(end))), all, end);
  });

  it('has written each line after a moment', longCase, async () => {
    const wait = `await new Promise((resolve) => setTimeout(resolve, 1000)); process.kill(process.pid, 'SIGKILL');`;
    assert.equal(messagesOf(await linesOf(script(wait))).length, 2);
  });
});

describe('silentLog', () => {
  it('writes nothing at any level', () => {
    assert.equal(silentLog().isLevelEnabled('fatal'), false);
  });
});
