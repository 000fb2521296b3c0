// `writ verify` for people: the outcome, the damage and the repairs, and the next command. Pure.
import type { Bounded } from '../../core/protocol/control-protocol.js';
import { formatDamage } from '../../core/status/scrub-state.js';
import type { VerifiedGeneration, VerifyResult } from '../../core/status/verify-report.js';
import { type Block, showResult } from './show-result.js';
import { counted, seconds, truncatedLines } from './show-text.js';

const maxShown = 20;

/**
 * @returns the lines, and for a damaged policy the next command. A repair that made a new generation has its lines
 * among them.
 */
export function showVerified(result: Bounded<VerifyResult>): Block {
  const { outcome, durationMs, generations, found, repair } = result;
  const scanned = `${listed(generations)} in ${seconds(durationMs)}`;
  const more = [...backupLines(result), ...untrustedLines(result), ...truncatedLines(result)];
  switch (outcome) {
    case 'empty':
      return { lines: ['EMPTY  no policy is active on this host.', ...more] };
    case 'intact':
      return { lines: [`INTACT  ${scanned}: everything matches what was signed.`, ...more] };
    case 'repaired': {
      const block = repair === undefined || !repair.changed ? { lines: [] } : showResult(repair);
      const lines = [
        `REPAIRED  ${scanned}: everything matches what was signed again.`,
        ...damageLines(found),
      ];
      return { lines: [...lines, ...block.lines.map((line) => `  ${line}`), ...more] };
    }
    case 'damaged': {
      const lines = generations.flatMap((one) => damageLines(one.damage));
      const why = repair?.problems.map(({ code, message }) => `  [${code}] ${message}`) ?? [];
      const bad = generations.filter((one) => one.damage.length > 0);
      const intact = generations.filter((one) => one.damage.length === 0);
      const code = verifiedCode(result);
      const named = bad.length === 0 ? scanned : `${listed(bad)} in ${seconds(durationMs)}`;
      const head =
        code === 'UNTRUSTED_ACTIVE'
          ? `UNTRUSTED  ${scanned}: no file differs, and current keys do not prove the active policy. [${code}]`
          : `DAMAGED  ${named}: some files do not match what was signed. [${code}]`;
      const rest = bad.length === 0 || intact.length === 0 ? [] : [`  intact: ${listed(intact)}`];
      return { lines: [head, ...lines, ...rest, ...why, ...more], next: nextOf(result) };
    }
  }
}

/**
 * @returns UNTRUSTED_ACTIVE for active releases with untrusted keys and no changed file, else STATE_DAMAGED; undefined for
 *   outcomes other than damaged
 */
export function verifiedCode({ outcome, generations, untrusted, truncated }: Bounded<VerifyResult>) {
  if (outcome !== 'damaged') return undefined;
  const isDamaged = truncated !== undefined || generations.some((one) => one.damage.length > 0);
  return !isDamaged && untrusted.some((one) => one.active) ? 'UNTRUSTED_ACTIVE' : 'STATE_DAMAGED';
}

function listed(generations: readonly VerifiedGeneration[]): string {
  return generations.map(({ generation, role }) => `generation ${generation} (${role})`).join(', ');
}

function damageLines(damage: VerifyResult['found']): string[] {
  const shown = damage.slice(0, maxShown).map((one) => `  ${formatDamage(one)}`);
  const more = damage.length - shown.length;
  return more > 0 ? [...shown, `  ${counted(more, 'thing')} more`] : shown;
}

function backupLines({ unrepaired = [] }: VerifyResult): string[] {
  return unrepaired.map(({ generation, role, end, problem: { code, message } }) => {
    const became =
      end === 'given-up'
        ? 'is no longer a backup, the next release makes a new one'
        : 'could not be repaired, and will be checked again';
    return `  generation ${generation} (${role}) ${became}: ${message} [${code}]`;
  });
}

function untrustedLines({ untrusted }: VerifyResult): string[] {
  return untrusted.map(
    ({ bundle, serial, generation, active, reason }) =>
      `  ${bundle} ${serial} in generation ${generation}${active ? ', which is active,' : ''} ${reason} [${active ? 'UNTRUSTED_ACTIVE' : 'RELEASE_UNTRUSTED'}]`,
  );
}

function nextOf({ generations, repair, unrepaired }: VerifyResult): string {
  const isDamaged = generations.some((one) => one.damage.length > 0);
  const wasTried = repair !== undefined || unrepaired !== undefined;
  return isDamaged && !wasTried ? 'writ verify --repair' : 'writ status';
}
