import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { askClockSync, type ClockSync } from '../../../../src/platform/process/clock-sync.js';
import type { CommandOptions, CommandResult } from '../../../../src/platform/process/run-command.js';

/** @param outputs stdout by the program; one that is not there does not start */
async function askedOf(outputs: Readonly<Record<string, string>>): Promise<ClockSync> {
  return askClockSync(async ({ argv }: CommandOptions): Promise<CommandResult> => {
    const stdout = outputs[argv[0]];
    if (stdout === undefined) return { kind: 'not-started', reason: 'ENOENT' };
    return { kind: 'exited', exitCode: 0, stdout, stderr: '', truncated: false, durationMs: 1 };
  });
}

const adjtimex = (status: string): string =>
  `         mode: 0\n     maxerror: 16000000\n       status: ${status}\n`;

describe('askClockSync', () => {
  const cases: readonly (readonly [string, Readonly<Record<string, string>>, ClockSync])[] = [
    ['systemd reports yes', { timedatectl: 'yes\n' }, 'synchronised'],
    ['systemd reports no', { timedatectl: 'no\n' }, 'unsynchronised'],
    ['no program is installed', {}, 'unknown'],
    ['systemd is not running', { timedatectl: '' }, 'unknown'],
    [
      'systemd is not running, and adjtimex is there',
      { timedatectl: '', adjtimex: adjtimex('64') },
      'unsynchronised',
    ],
    ['adjtimex of its package', { adjtimex: adjtimex('8193') }, 'synchronised'],
    ['adjtimex of BusyBox', { busybox: adjtimex('64 (UNSYNC)') }, 'unsynchronised'],
    ['something else', { adjtimex: 'status: what\n' }, 'unknown'],
  ];
  for (const [name, outputs, expected] of cases) {
    it(`${name}: ${expected}`, async () => assert.equal(await askedOf(outputs), expected));
  }

  it('asks this machine, whatever is on it, and has an answer', async () => {
    assert.match(await askClockSync(), /^(synchronised|unsynchronised|unknown)$/);
  });
});
