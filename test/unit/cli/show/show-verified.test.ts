import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { showVerified, verifiedCode } from '../../../../src/cli/show/show-verified.js';
import { parseControlRequest } from '../../../../src/core/protocol/control-protocol.js';
import type { DamageFound } from '../../../../src/core/status/scrub-state.js';
import type { VerifyResult } from '../../../../src/core/status/verify-report.js';
import { cycleResult, problem } from '../../../kit/cli/cycle-results.js';

const file: DamageFound = {
  generation: 2,
  part: 'tree',
  kind: 'changed',
  bundle: 'dns-edge',
  tree: '2-2c26b46b68ff.2',
  path: 'block.rpz',
};

const whole: VerifyResult = {
  schema: 1,
  type: 'verify.result',
  outcome: 'intact',
  exitCode: 0,
  generations: [
    { generation: 2, role: 'active', damage: [] },
    { generation: 1, role: 'previous', damage: [] },
  ],
  found: [],
  untrusted: [],
  durationMs: 1200,
};

describe('writ verify', () => {
  it('names the scanned generations', () => {
    assert.deepEqual(showVerified(whole).lines, [
      'INTACT  generation 2 (active), generation 1 (previous) in 1.2 s: everything matches what was signed.',
    ]);
    assert.match(showVerified({ ...whole, outcome: 'empty', generations: [] }).lines[0] ?? '', /^EMPTY/);
  });

  it('names the damaged file, the cause of a failed repair, and the next command', () => {
    const generations = [{ generation: 2, role: 'active', damage: [file] }] as const;
    const damaged = { ...whole, outcome: 'damaged', exitCode: 1, generations, found: [file] } as const;
    const seen = showVerified(damaged);
    assert.ok(seen.lines.includes('  dns-edge: block.rpz changed on disk'));
    assert.equal(seen.next, 'writ verify --repair');
    const repair = cycleResult('failed', { problems: [problem('REPAIR_FAILED', 'the disk is full')] });
    const tried = showVerified({ ...damaged, repair });
    assert.ok(tried.lines.some((line) => line.includes('[REPAIR_FAILED] the disk is full')));
    assert.equal(tried.next, 'writ status');
  });

  it('names the damaged generations and the intact ones', () => {
    const [active, previous] = whole.generations;
    const generations = [active!, { ...previous!, damage: [file] }];
    const [head, , rest] = showVerified({ ...whole, outcome: 'damaged', exitCode: 1, generations }).lines;
    assert.match(head ?? '', /^DAMAGED {2}generation 1 \(previous\) in 1\.2 s: some files do not match/);
    assert.equal(rest, '  intact: generation 2 (active)');
  });

  it('reports the end of a backup that could not be repaired, without a next command that would fail again', () => {
    const backup = {
      generation: 1,
      role: 'previous',
      problem: problem('STATE_DAMAGED', 'no record'),
    } as const;
    const lost = {
      ...whole,
      outcome: 'repaired',
      found: [file],
      generations: whole.generations.slice(0, 1),
    } as const;
    const seen = showVerified({ ...lost, unrepaired: [{ ...backup, end: 'given-up' }] });
    const line =
      '  generation 1 (previous) is no longer a backup, the next release makes a new one: no record [STATE_DAMAGED]';
    assert.ok(seen.lines.includes(line), seen.lines.join('\n'));
    assert.equal(seen.next, undefined);
    const generations = [{ generation: 1, role: 'previous', damage: [file] }] as const;
    const kept = { ...whole, outcome: 'damaged', exitCode: 1, generations } as const;
    const tried = showVerified({ ...kept, unrepaired: [{ ...backup, end: 'kept' }] });
    assert.ok(tried.lines.some((one) => one.includes('could not be repaired')));
    assert.equal(tried.next, 'writ status');
  });

  it('prints at most 22 lines of repairs, with a count of the others', () => {
    const found = Array.from({ length: 30 }, () => file);
    const { lines, next } = showVerified({ ...whole, outcome: 'repaired', found });
    assert.match(lines[0] ?? '', /^REPAIRED/);
    assert.deepEqual([lines.length, lines.at(-1), next], [22, '  10 things more', undefined]);
  });

  it('names releases that no trusted role signs', () => {
    const release = { bundle: 'dns-edge', serial: 2, generation: 2, active: true, reason: 'is not listed' };
    const { lines } = showVerified({ ...whole, outcome: 'damaged', exitCode: 1, untrusted: [release] });
    assert.ok(lines.at(-1)?.endsWith('[UNTRUSTED_ACTIVE]'));
  });

  it('names the untrusted keys and no damage when no file differs', () => {
    const release = { bundle: 'dns-edge', serial: 2, generation: 2, active: true, reason: 'is not listed' };
    const result = { ...whole, outcome: 'damaged', exitCode: 1, untrusted: [release] } as const;
    assert.match(
      showVerified(result).lines[0] ?? '',
      /^UNTRUSTED {2}.*: no file differs.*UNTRUSTED_ACTIVE\]$/,
    );
    assert.equal(verifiedCode(result), 'UNTRUSTED_ACTIVE');
    const generations = [{ generation: 2, role: 'active', damage: [file] }] as const;
    for (const damaged of [
      { ...result, generations },
      { ...result, truncated: { damage: 3 } },
    ]) {
      assert.match(showVerified(damaged).lines[0] ?? '', /^DAMAGED .*STATE_DAMAGED\]$/);
      assert.equal(verifiedCode(damaged), 'STATE_DAMAGED');
    }
    assert.equal(verifiedCode(whole), undefined);
  });

  it('is requested with the name of the caller', () => {
    assert.deepEqual(parseControlRequest({ type: 'verify', repair: true, by: 'anna' }), {
      type: 'verify',
      repair: true,
      by: 'anna',
    });
    assert.equal((parseControlRequest({ type: 'verify', by: 'anna' }) as { repair: boolean }).repair, false);
    assert.throws(() => parseControlRequest({ type: 'verify' }), { code: 'MESSAGE_MALFORMED' });
  });
});
