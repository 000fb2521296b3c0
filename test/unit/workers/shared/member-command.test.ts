import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { listByCommand } from '../../../../src/workers/shared/member-command.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';

const sh = (script: string, timeout?: string): Promise<readonly string[]> =>
  listByCommand({ run: ['sh', '-c', script], ...(timeout === undefined ? {} : { timeout }) });

describe('members by a command', () => {
  it('are its lines, sorted, each once', async () => {
    assert.deepEqual(await sh('printf "b@2.x\\na-1\\n\\nb@2.x\\n10.0.0.1:80"'), [
      '10.0.0.1:80',
      'a-1',
      'b@2.x',
    ]);
    assert.deepEqual(await sh('true'), []);
  });

  const unsayable: readonly (readonly [string, string])[] = [
    ['it fails', 'echo a; exit 1'],
    ['it warns', 'echo a; exit 32'],
    ['it is killed', 'echo a; kill -9 $$'],
    ['it prints a path', 'echo ../../etc/passwd'],
    ['it prints an option', 'echo --all'],
    ['it prints two words', 'echo a b'],
    ['it prints a control character', 'printf "a\\033[2J\\n"'],
    ['it prints an empty word with a return', 'printf "a\\r\\n"'],
    ['it names one that is too long', `echo ${'a'.repeat(129)}`],
    ['it names too many', 'seq 1025'],
    ['it prints more than is read', 'yes a | head -c 100000'],
  ];
  for (const [what, script] of unsayable) {
    it(`are an error, not none, when ${what}`, async () => {
      await rejectsCode('WORKER_UNREACHABLE', sh(script));
    });
  }

  it('are an error when it hangs or is not there', async () => {
    await rejectsCode('WORKER_UNREACHABLE', sh('sleep 60', '50ms'));
    await rejectsCode('WORKER_UNREACHABLE', listByCommand({ run: ['/nonexistent/list'] }));
  });
});
